"""What is read of a node becomes a state and something to do."""

from __future__ import annotations

import builders
import msgspec
import pytest

from benchwright.core.machine import Machine
from benchwright.core.node.checkup import Finding, State
from benchwright.core.node.health import CpuHealth, DiskHealth, GpuHealth, Health, MemoryHealth, Pressure, ThermalZone
from benchwright.doctor.judge_gpus import judge_gpus
from benchwright.doctor.judge_health import judge_health

GIB = 1 << 30
MACHINE = builders.machine(cores=4, cores_total=4, memory_bytes=16 * GIB)
UNKNOWN = Health(cpu=CpuHealth(), memory=MemoryHealth(), disk=DiskHealth(folder="/results"))
CALM = Health(
    cpu=CpuHealth(
        governors={"performance": 4},
        turbo=False,
        smt=False,
        load_1m=0.1,
        busy_percent=1.0,
        steal_percent=0.0,
        pressure=Pressure(some_percent=0.0),
        clock_source="tsc",
        throttle_events=0,
    ),
    memory=MemoryHealth(
        total_bytes=16 * GIB,
        available_bytes=12 * GIB,
        swap_total_bytes=0,
        swap_used_bytes=0,
        pressure=Pressure(some_percent=0.0),
    ),
    disk=DiskHealth(
        folder="/results", free_bytes=99 * GIB, total_bytes=200 * GIB, kind="ext4", writable=True,
        pressure=Pressure(some_percent=0.0),
    ),
    zones=(ThermalZone(name="package", temperature_c=40, throttles_at_c=95),),
    on_battery=False,
    open_files_limit=65536,
)  # fmt: skip


def judged(health: Health, machine: Machine = MACHINE) -> dict[str, Finding]:
    findings = judge_health(health, machine)
    assert len({f.name for f in findings}) == len(findings)
    return {f.name: f for f in findings}


def changed(part: str, **values: object) -> Health:
    return msgspec.structs.replace(CALM, **{part: msgspec.structs.replace(getattr(CALM, part), **values)})


def test_a_calm_machine_is_fine_in_everything():
    assert {f.state for f in judged(CALM).values()} == {State.OK}


def test_what_is_not_told_is_unknown_and_never_bad():
    found = judged(UNKNOWN)
    assert set(found) == set(judged(CALM))
    assert {f.state for f in found.values()} == {State.UNKNOWN, State.OK}
    assert {name for name, f in found.items() if f.state is State.OK} == {"cpu.quota", "cpu.virtual"}


@pytest.mark.parametrize(
    ("health", "name", "state"),
    [
        (changed("cpu", governors={"powersave": 4}), "cpu.governor", State.WARNING),
        (changed("cpu", governors={"performance": 3, "powersave": 1}), "cpu.governor", State.WARNING),
        (changed("cpu", busy_percent=30.0), "cpu.load", State.WARNING),
        (changed("cpu", load_1m=3.0), "cpu.load", State.WARNING),
        (changed("cpu", busy_percent=95.0), "cpu.load", State.BAD),
        (changed("cpu", steal_percent=4.0), "cpu.steal", State.WARNING),
        (changed("cpu", steal_percent=20.0), "cpu.steal", State.BAD),
        (changed("cpu", pressure=Pressure(some_percent=30.0)), "cpu.pressure", State.WARNING),
        (changed("cpu", pressure=Pressure(some_percent=80.0)), "cpu.pressure", State.BAD),
        (changed("cpu", quota_cores=2.0), "cpu.quota", State.OK),
        (changed("cpu", quota_cores=2.0, throttled_percent=9.0), "cpu.quota", State.WARNING),
        (changed("cpu", quota_cores=0.5), "cpu.quota", State.WARNING),
        (changed("cpu", clock_source="hpet"), "cpu.clock", State.WARNING),
        (changed("cpu", throttle_events=9), "cpu.slowed", State.WARNING),
        (changed("memory", available_bytes=GIB), "memory.free", State.WARNING),
        (changed("memory", available_bytes=GIB // 8), "memory.free", State.BAD),
        (changed("memory", swap_total_bytes=GIB, swap_used_bytes=GIB // 2), "memory.swap", State.WARNING),
        (changed("memory", swap_total_bytes=GIB, swap_used_bytes=4096), "memory.swap", State.OK),
        (changed("memory", pressure=Pressure(some_percent=20.0)), "memory.pressure", State.BAD),
        (changed("disk", free_bytes=GIB), "disk.free", State.WARNING),
        (changed("disk", free_bytes=1000), "disk.free", State.BAD),
        (changed("disk", free_files=3), "disk.free", State.WARNING),
        (changed("disk", writable=False), "disk.free", State.BAD),
        (changed("disk", kind="tmpfs"), "disk.kind", State.WARNING),
        (changed("disk", kind="nfs4"), "disk.kind", State.WARNING),
        (changed("disk", pressure=Pressure(some_percent=30.0)), "disk.pressure", State.WARNING),
        (msgspec.structs.replace(CALM, open_files_limit=256), "limits.files", State.WARNING),
        (msgspec.structs.replace(CALM, on_battery=True), "heat.power", State.WARNING),
        (msgspec.structs.replace(CALM, zones=(ThermalZone(name="x", temperature_c=85),)), "heat.zones", State.WARNING),
        (
            msgspec.structs.replace(CALM, zones=(ThermalZone(name="x", temperature_c=99, throttles_at_c=100),)),
            "heat.zones",
            State.BAD,
        ),
    ],
)  # fmt: skip
def test_one_trouble_is_found_and_nothing_else(health, name, state):
    found = judged(health)
    assert found[name].state is state
    assert (found[name].advice is None) == (state is State.OK)
    assert {f.state for n, f in found.items() if n != name} == {State.OK}


def test_inside_a_container_neighbours_are_unknown():
    finding = judged(CALM, msgspec.structs.replace(MACHINE, virtual="docker"))["cpu.virtual"]
    assert finding.state is State.UNKNOWN
    assert finding.advice


def test_a_limit_of_memory_is_told_with_what_the_machine_has():
    text = judged(changed("memory", limit_bytes=4 * GIB, available_bytes=3 * GIB))["memory.free"].text
    assert "4 GiB" in text
    assert "16 GiB" in text


GPU = GpuHealth(
    index=1,
    name="H200",
    persistent=True,
    processes=(),
    load_percent=0.0,
    memory_used_bytes=0,
    memory_total_bytes=141 * GIB,
    uncorrected_errors=0,
    temperature_c=35.0,
    throttles_at_c=87.0,
    throttle_reasons=(),
    power_limit_w=700.0,
    power_default_w=700.0,
)


def test_a_calm_gpu_is_fine_and_one_that_tells_nothing_unknown():
    assert {f.state for f in judge_gpus((GPU,), None)} == {State.OK}
    assert {f.state for f in judge_gpus((GpuHealth(index=0, name="GPU"),), None)} == {State.UNKNOWN}


@pytest.mark.parametrize(
    ("change", "name", "state"),
    [
        ({"processes": (4, 5)}, "gpu.1.users", State.WARNING),
        ({"load_percent": 90.0}, "gpu.1.users", State.BAD),
        ({"throttle_reasons": ("software power cap",)}, "gpu.1.clock", State.WARNING),
        ({"throttle_reasons": ("hardware thermal slowdown",)}, "gpu.1.clock", State.BAD),
        ({"temperature_c": 80.0}, "gpu.1.heat", State.WARNING),
        ({"power_limit_w": 500.0}, "gpu.1.power", State.WARNING),
        ({"uncorrected_errors": 1}, "gpu.1.errors", State.BAD),
        ({"persistent": False}, "gpu.1.persistence", State.WARNING),
    ],
)
def test_one_trouble_of_a_gpu_is_found_and_nothing_else(change, name, state):
    found = {f.name: f for f in judge_gpus((msgspec.structs.replace(GPU, **change),), None)}
    assert found[name].state is state
    assert found[name].advice
    assert {f.state for n, f in found.items() if n != name} == {State.OK}


def test_a_driver_that_does_not_answer_is_a_warning():
    (finding,) = judge_gpus((), "no answer")
    assert (finding.name, finding.state) == ("gpu.driver", State.WARNING)

"""What is read of a node becomes a state and something to do."""

from __future__ import annotations

import builders
import msgspec
import pytest

from benchwright.core.health import CpuHealth, DiskHealth, GpuHealth, Health, MemoryHealth, Pressure, ThermalZone
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.doctor.judge_health import judge_gpus, judge_health

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
        clock_limit_mhz=3500.0,
        clock_most_mhz=3500.0,
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


def judged(health: Health, machine: Machine = MACHINE) -> dict[str | None, Note]:
    notes = judge_health(health, machine)
    assert len({n.kind for n in notes}) == len(notes)
    return {n.kind: n for n in notes}


def changed(part: str, **values: object) -> Health:
    return msgspec.structs.replace(CALM, **{part: msgspec.structs.replace(getattr(CALM, part), **values)})


def test_a_calm_machine_is_fine_in_everything():
    assert {f.severity for f in judged(CALM).values()} == {"ok"}


def test_what_is_not_told_is_unknown_and_never_bad():
    found = judged(UNKNOWN)
    assert set(found) == set(judged(CALM))
    assert {f.severity for f in found.values()} == {"unknown", "ok"}
    assert {name for name, f in found.items() if f.severity == "ok"} == {"cpu.quota", "cpu.virtual"}


@pytest.mark.parametrize(
    ("health", "name", "severity"),
    [
        (changed("cpu", governors={"powersave": 4}), "cpu.governor", "warning"),
        (changed("cpu", governors={"performance": 3, "powersave": 1}), "cpu.governor", "warning"),
        (changed("cpu", busy_percent=30.0), "cpu.load", "warning"),
        (changed("cpu", load_1m=3.0), "cpu.load", "warning"),
        (changed("cpu", busy_percent=95.0), "cpu.load", "error"),
        (changed("cpu", steal_percent=4.0), "cpu.steal", "warning"),
        (changed("cpu", steal_percent=20.0), "cpu.steal", "error"),
        (changed("cpu", pressure=Pressure(some_percent=30.0)), "cpu.pressure", "warning"),
        (changed("cpu", pressure=Pressure(some_percent=80.0)), "cpu.pressure", "error"),
        (changed("cpu", quota_cores=2.0), "cpu.quota", "ok"),
        (changed("cpu", quota_cores=2.0, throttled_percent=9.0), "cpu.quota", "warning"),
        (changed("cpu", quota_cores=0.5), "cpu.quota", "warning"),
        (changed("cpu", clock_source="hpet"), "cpu.clock", "warning"),
        (changed("cpu", throttle_events=9), "cpu.slowed", "warning"),
        (changed("memory", available_bytes=GIB), "memory.free", "warning"),
        (changed("memory", available_bytes=GIB // 8), "memory.free", "error"),
        (changed("memory", swap_total_bytes=GIB, swap_used_bytes=GIB // 2), "memory.swap", "warning"),
        (changed("memory", swap_total_bytes=GIB, swap_used_bytes=4096), "memory.swap", "ok"),
        (changed("memory", pressure=Pressure(some_percent=20.0)), "memory.pressure", "error"),
        (changed("disk", free_bytes=GIB), "disk.free", "warning"),
        (changed("disk", free_bytes=1000), "disk.free", "error"),
        (changed("disk", free_files=3), "disk.free", "warning"),
        (changed("disk", writable=False), "disk.free", "error"),
        (changed("disk", kind="tmpfs"), "disk.kind", "warning"),
        (changed("disk", kind="nfs4"), "disk.kind", "warning"),
        (changed("disk", pressure=Pressure(some_percent=30.0)), "disk.pressure", "warning"),
        (msgspec.structs.replace(CALM, open_files_limit=256), "limits.files", "warning"),
        (msgspec.structs.replace(CALM, on_battery=True), "heat.power", "warning"),
        (msgspec.structs.replace(CALM, zones=(ThermalZone(name="x", temperature_c=85),)), "heat.zones", "warning"),
        (
            msgspec.structs.replace(CALM, zones=(ThermalZone(name="x", temperature_c=99, throttles_at_c=100),)),
            "heat.zones",
            "error",
        ),
    ],
)  # fmt: skip
def test_one_trouble_is_found_and_nothing_else(health, name, severity):
    found = judged(health)
    assert found[name].severity == severity
    assert (found[name].remedy is None) == (severity == "ok")
    assert {f.severity for n, f in found.items() if n != name} == {"ok"}


def test_inside_a_container_neighbours_are_unknown():
    note = judged(CALM, msgspec.structs.replace(MACHINE, virtual="docker"))["cpu.virtual"]
    assert note.severity == "unknown"
    assert note.remedy


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
    link_width=16,
    link_width_most=16,
)


def test_a_calm_gpu_is_fine_and_one_that_tells_nothing_unknown():
    assert {f.severity for f in judge_gpus((GPU,), None)} == {"ok"}
    assert {f.severity for f in judge_gpus((GpuHealth(index=0, name="GPU"),), None)} == {"unknown"}


@pytest.mark.parametrize(
    ("change", "name", "severity"),
    [
        ({"processes": (4, 5)}, "gpu.1.users", "warning"),
        ({"load_percent": 90.0}, "gpu.1.users", "error"),
        ({"throttle_reasons": ("software power cap",)}, "gpu.1.clock", "warning"),
        ({"throttle_reasons": ("hardware thermal slowdown",)}, "gpu.1.clock", "error"),
        ({"temperature_c": 80.0}, "gpu.1.heat", "warning"),
        ({"power_limit_w": 500.0}, "gpu.1.power", "warning"),
        ({"uncorrected_errors": 1}, "gpu.1.errors", "error"),
        ({"link_width": 8}, "gpu.1.link", "warning"),
        ({"persistent": False}, "gpu.1.persistence", "warning"),
    ],
)
def test_one_trouble_of_a_gpu_is_found_and_nothing_else(change, name, severity):
    found = {f.kind: f for f in judge_gpus((msgspec.structs.replace(GPU, **change),), None)}
    assert found[name].severity == severity
    assert found[name].remedy
    assert {f.severity for n, f in found.items() if n != name} == {"ok"}


def test_a_driver_that_does_not_answer_is_a_warning():
    (note,) = judge_gpus((), "no answer")
    assert (note.kind, note.severity) == ("gpu.driver", "warning")

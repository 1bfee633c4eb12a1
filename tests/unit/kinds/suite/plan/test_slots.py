"""Where the processes of a suite's benchmarks go, and which of them cannot run."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from suites import FOLDER, ONE_JOB, entry, jobs_of, machine_with, planned

from benchwright.core.benchmark import Placement
from benchwright.core.errors import InvalidInput
from benchwright.core.status import Reason
from benchwright.core.system import Node, System
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.planner import unmet_condition

NODES = tuple(Node(name=f"n{i}", ip=f"10.0.0.{i}", main=i == 2) for i in range(1, 4))


def test_per_gpu_is_one_process_for_each_and_they_meet() -> None:
    jobs = jobs_of(entry("b"), gpus=3)
    assert [(job.id, job.devices, job.node) for job in jobs] == [(f"b.D{i}", (i,), "localhost") for i in range(3)]
    assert [job.barrier and (job.barrier.size, job.barrier.rank) for job in jobs] == [(3, 0), (3, 1), (3, 2)]


def test_per_gpu_without_gpus_is_one_job_on_the_cpu() -> None:
    (job,) = jobs_of(entry("b"), gpus=0)
    assert (job.id, job.devices, job.barrier) == ("b.D0", (), None)


def test_a_system_of_arch_cpu_uses_no_gpu() -> None:
    (job,) = jobs_of(entry("b", "{device_name}"), gpus=4, system=System(arch="cpu"))
    assert (job.id, job.devices, job.argv[-1]) == ("b.D0", (), "cpu")


def test_jobs_are_numbered_and_see_all_devices() -> None:
    assert [(job.id, job.devices) for job in jobs_of(entry("b", placement=ONE_JOB), gpus=2)] == [("b.0", (0, 1))]
    jobs = jobs_of(entry("b", placement=Placement(jobs=2, numbered=True)), gpus=1)
    assert [(job.id, job.devices) for job in jobs] == [("b.0", (0,)), ("b.1", (0,))]
    assert {job.barrier.folder for job in jobs if job.barrier} == {f"{FOLDER}/.barrier/b"}


def test_devices_can_be_emulated() -> None:
    plan = planned(entry("b", "{gpu_count}"), gpus=0, system=System(gpu_count=8))
    jobs = plan.launches[0]
    assert [job.id for job in jobs] == [f"b.D{i}" for i in range(8)]
    assert [job.env["CUDA_VISIBLE_DEVICES"] for job in jobs] == [str(i) for i in range(8)]
    assert {job.barrier.size for job in jobs if job.barrier} == {8}
    assert jobs[0].argv[-1] == "8"
    assert plan.notes["b"] == ("8 devices are emulated; the machine has 0",)


def test_emulated_devices_share_those_that_are_there() -> None:
    jobs = jobs_of(entry("b"), gpus=2, system=System(gpu_count=4))
    assert [job.env["CUDA_VISIBLE_DEVICES"] for job in jobs] == ["0", "1", "0", "1"]
    (job,) = jobs_of(entry("b", placement=ONE_JOB), gpus=2, system=System(gpu_count=4))
    assert job.env["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_fewer_devices_than_there_are_can_be_asked_for() -> None:
    jobs = jobs_of(entry("b"), gpus=4, system=System(gpu_count=2))
    assert [job.devices for job in jobs] == [(0,), (1,)]
    assert all("CUDA_VISIBLE_DEVICES" not in job.env for job in jobs)


@pytest.mark.parametrize(
    ("arch", "variable", "value"),
    [
        ("rocm", "ROCR_VISIBLE_DEVICES", "1"),
        ("hpu", "HABANA_VISIBLE_MODULES", "1"),
        ("xpu", "ONEAPI_DEVICE_SELECTOR", "level_zero:1"),
    ],
)
def test_other_vendors_have_their_own_variable(arch: str, variable: str, value: str) -> None:
    env = jobs_of(entry("b"), gpus=0, system=System(arch=arch, gpu_count=2))[1].env
    assert env[variable] == value
    assert env["CUDA_VISIBLE_DEVICES"] is None


@pytest.mark.parametrize("arch", ["rocm", "hpu", "xpu"])
def test_devices_that_cannot_be_counted_here_are_not_called_emulated(arch: str) -> None:
    plan = planned(entry("b"), gpus=0, system=System(arch=arch, gpu_count=2))
    assert plan.notes["b"] == (f"2 {arch} devices according to the system file; {arch} devices are not detected",)
    one = planned(entry("b"), gpus=0, system=System(arch=arch, gpu_count=1))
    assert one.notes["b"][0].startswith(f"1 {arch} device according to the system file;")


def test_devices_of_a_cpu_are_emulated_for_certain() -> None:
    plan = planned(entry("b"), gpus=0, system=System(arch="cpu", gpu_count=2))
    assert plan.notes["b"] == ("2 devices are emulated; the machine has 0",)


def test_with_nodes_a_job_goes_to_the_main_one() -> None:
    jobs = jobs_of(entry("b"), gpus=1, system=System(nodes=NODES))
    assert [(job.id, job.node) for job in jobs] == [("b.D0", "n2")]


def test_several_machines_have_seats_of_their_own_and_barriers_of_their_own() -> None:
    jobs = jobs_of(entry("b", placement=Placement(per_device=True, machines=2)), gpus=2, system=System(nodes=NODES))
    assert [(job.id, job.node) for job in jobs] == [
        ("b.D0.n2", "n2"),
        ("b.D1.n2", "n2"),
        ("b.D0.n1", "n1"),
        ("b.D1.n1", "n1"),
    ]
    assert {job.machines for job in jobs} == {2}
    barriers = [job.barrier for job in jobs if job.barrier is not None]
    assert [(b.folder, b.size, b.rank) for b in barriers] == [
        (f"{FOLDER}/.barrier/b.n2", 2, 0),
        (f"{FOLDER}/.barrier/b.n2", 2, 1),
        (f"{FOLDER}/.barrier/b.n1", 2, 0),
        (f"{FOLDER}/.barrier/b.n1", 2, 1),
    ]


def test_more_machines_than_there_are_is_a_reason_to_skip() -> None:
    plan = planned(entry("b", placement=Placement(numbered=True, machines=4)), system=System(nodes=NODES))
    reason, said = plan.skipped["b"]
    assert reason is Reason.LACKS_CAPABILITY
    assert said == "needs 4 machines, the system has 3 machines; list them under `nodes` in the system file"


def test_more_devices_than_there_are_is_a_reason_to_skip() -> None:
    plan = planned(entry("b", placement=Placement(needs_devices=2)), gpus=0)
    assert plan.skipped["b"] == (Reason.LACKS_DEVICES, "needs 2 devices, the system has none; override its plan")


def test_a_condition_that_does_not_hold_is_a_reason_to_skip() -> None:
    plan = planned(entry("b", requires=("len(nodes) >= 1", "gpu['count'] > 1")), gpus=1)
    assert plan.skipped["b"] == (Reason.LACKS_CAPABILITY, "needs gpu['count'] > 1, which does not hold here")
    assert planned(entry("b", requires=("gpu['count'] > 1",)), gpus=2).skipped == {}


@pytest.mark.parametrize(
    "condition",
    [
        "gpu.capacity >= 80 * GiB",
        "gpu.name == 'H100'",
        "cpu.count == 64",
        "memory['capacity'] > 1 * GiB",
        "arch in ['cuda', 'rocm']",
        "system.gpu.count == 2",
        "'${system.arch}' == 'cuda'",
        "${system.gpu.count} > 1",
        "nodes[0].name == 'localhost'",
    ],
)
def test_conditions_may_name_what_the_machine_has(condition: str) -> None:
    assert unmet_condition(entry(requires=(condition,)), machine_facts(machine_with(2), System())) is None


def test_a_condition_that_cannot_be_judged_is_an_error() -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(entry("b", requires=("gpu['cout'] > 1",)))
    assert "suite.yaml [b]: b requires 'gpu['cout'] > 1'" in str(caught.value)
    assert "did you mean 'count'?" in str(caught.value)


@given(
    gpus=st.integers(0, 9),
    emulated=st.none() | st.integers(0, 9),
    per_device=st.booleans(),
    count=st.integers(1, 5),
    machines=st.integers(1, 3),
)
def test_every_process_has_a_place_of_its_own(
    gpus: int, emulated: int | None, per_device: bool, count: int, machines: int
) -> None:
    placement = Placement(jobs=count, numbered=True, per_device=per_device, machines=machines)
    jobs = jobs_of(entry("b", placement=placement), gpus=gpus, system=System(nodes=NODES, gpu_count=emulated))
    devices = gpus if emulated is None else emulated
    on_each = max(1, devices) if per_device else count
    assert len(jobs) == machines * on_each
    assert len({job.id for job in jobs}) == len({job.stream for job in jobs}) == len(jobs)
    places = [(job.barrier.folder, job.barrier.rank) for job in jobs if job.barrier is not None]
    assert len(set(places)) == len(places) == (len(jobs) if on_each > 1 else 0)
    assert all(job.barrier.size == on_each for job in jobs if job.barrier is not None)
    assert all(len(job.devices) == (min(1, devices) if per_device else devices) for job in jobs)


@pytest.mark.parametrize(
    ("known", "skipped"),
    [((9.0, 9.0), False), ((8.9,), False), ((8.0,), True), ((9.0, 8.0), True), ((None,), False), ((), True)],
    ids=["H200", "L4", "A100", "the least counts", "not known", "no GPU"],
)
def test_a_condition_may_ask_what_the_gpus_can_compute(known: tuple[float | None, ...], skipped: bool) -> None:
    machine = machine_with(len(known))
    gpus = [msgspec.structs.replace(gpu, compute=c) for gpu, c in zip(machine.accelerators, known, strict=True)]
    conditions = ("gpu['count'] > 0", "gpu['compute'] == 0 or gpu['compute'] >= 8.9")
    there = msgspec.structs.replace(machine, accelerators=tuple(gpus))
    assert ("b" in planned(entry("b", requires=conditions), machine=there).skipped) == skipped

"""From benchmarks and a machine to jobs."""

from __future__ import annotations

import builders
import pytest
from builders import benchmark

from benchwright.core.benchmark import Benchmark, Placement, Script
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Accelerator, Machine
from benchwright.core.run import Plan
from benchwright.core.status import Reason
from benchwright.core.stop_rule import StopRule
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan
from benchwright.plan.turns import started_together


def machine(gpus: int = 0) -> Machine:
    return builders.machine(*(Accelerator(index=i, name="H200") for i in range(gpus)), cores=4)


def planned(*benchmarks: Benchmark, gpus: int = 0, options: Options | None = None) -> Plan:
    return make_plan(
        benchmarks,
        machine(gpus),
        options or Options(),
        kind_of,
        folder="/runs/x",
        probe_path="/probe",
        usable_cores=[0, 1, 2, 3],
    )


def test_a_plain_command_is_one_job_on_device_0() -> None:
    (jobs,) = planned(benchmark()).launches
    assert [job.id for job in jobs] == ["b.D0"]
    assert jobs[0].stream == "/runs/x/b.D0.data"
    assert jobs[0].devices == ()
    assert jobs[0].barrier is None


def test_per_device_gives_one_job_for_each_gpu_and_they_meet_at_a_barrier() -> None:
    (jobs,) = planned(benchmark(placement=Placement(per_device=True)), gpus=3).launches
    assert [(job.id, job.devices) for job in jobs] == [("b.D0", (0,)), ("b.D1", (1,)), ("b.D2", (2,))]
    assert [job.barrier.rank for job in jobs if job.barrier] == [0, 1, 2]
    assert {job.barrier.size for job in jobs if job.barrier} == {3}


def test_per_device_without_gpus_is_one_cpu_job() -> None:
    (jobs,) = planned(benchmark(placement=Placement(per_device=True))).launches
    assert [job.id for job in jobs] == ["b.D0"]


def test_several_jobs_are_numbered() -> None:
    (jobs,) = planned(
        benchmark(placement=Placement(jobs=2)),
    ).launches
    assert [job.id for job in jobs] == ["b.0", "b.1"]


def test_what_needs_more_gpus_than_there_are_is_skipped_with_a_remedy() -> None:
    plan = planned(benchmark("big", placement=Placement(needs_devices=8)), benchmark("small"), gpus=1)
    reason, detail = plan.skipped["big"]
    assert reason is Reason.LACKS_DEVICES
    assert "needs 8 GPUs" in detail
    assert "--num-gpus 1" in detail
    assert [jobs[0].benchmark for jobs in plan.launches] == ["small"]


def test_needed_gpus_are_given_to_one_job() -> None:
    (jobs,) = planned(benchmark(placement=Placement(needs_devices=2)), gpus=4).launches
    assert jobs[0].devices == (0, 1)


def test_a_core_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"core 9.*choose from 0,1,2,3"):
        planned(benchmark(placement=Placement(cores=(0, 9))))


def test_a_script_is_started_by_its_interpreter_and_told_its_stop_rule() -> None:
    script = Script(path="/s/train.py", args=("--lr", "1"), cwd="/s", python="/usr/bin/python")
    (jobs,) = planned(Benchmark(name="s", workload=script, source="t", stop=StopRule(steps=7), loop="fit")).launches
    assert jobs[0].argv == ("/usr/bin/python", "/s/train.py", "--lr", "1")
    assert jobs[0].probe["stop"] == {"steps": 7}
    assert jobs[0].probe["loop"] == "fit"


def test_job_ids_of_a_plan_are_distinct() -> None:
    options = Options(repeat=3, warmup_runs=2, interleave=True)
    plan = planned(benchmark("a"), benchmark("b", placement=Placement(jobs=2)), options=options)
    ids = [job.id for jobs in plan.launches for job in jobs]
    assert len(ids) == len(set(ids)) == 5 + 10
    assert [jobs[0].position for jobs in plan.launches] == list(range(len(plan.launches)))


def test_as_many_gpus_as_are_needed_are_enough() -> None:
    plan = planned(benchmark(placement=Placement(needs_devices=2)), gpus=2)
    assert plan.skipped == {}
    assert plan.launches[0][0].devices == (0, 1)


def test_each_launch_has_a_barrier_of_its_own() -> None:
    """Files that the launch before left there would open it at once."""
    plan = planned(benchmark(placement=Placement(jobs=2)), options=Options(repeat=2, warmup_runs=1))
    folders = [{job.barrier.folder for job in jobs if job.barrier} for jobs in plan.launches]
    assert [len(of_launch) for of_launch in folders] == [1, 1, 1]
    assert len(set.union(*folders)) == 3


def test_the_seed_rotates_which_order_comes_first() -> None:
    def first_block(seed: int) -> list[str]:
        options = Options(repeat=2, interleave=True, seed=seed)
        return [jobs[0].benchmark for jobs in planned(benchmark("a"), benchmark("b"), options=options).launches][:2]

    assert (first_block(0), first_block(1)) == (["a", "b"], ["b", "a"])


def test_a_job_has_the_deadline_environment_and_settings_of_its_benchmark() -> None:
    options = Options(grace=2.5, sample_interval=0.25, discard_logs=True, show_output=True)
    (jobs,) = planned(benchmark(timeout_s=90.0, env={"A": "1"}), options=options).launches
    (job,) = jobs
    assert (job.timeout_s, job.grace_s, job.sample_interval_s) == (90.0, 2.5, 0.25)
    assert (job.env, job.discard_log, job.echo, job.probe_path) == ({"A": "1"}, True, True, "/probe")


def test_launches_that_take_turns_share_a_place_and_their_order_alternates() -> None:
    options = Options(repeat=2, interleave=True, turns=0.5, warmup_runs=1)
    plan = planned(benchmark("a", timeout_s=10.0), benchmark("b"), options=options)
    groups = started_together(plan.launches)
    assert [[launch[0].id for launch in group] for group in groups] == [
        ["a.W0.D0"], ["b.W0.D0"], ["a.R0.D0", "b.R0.D0"], ["b.R1.D0", "a.R1.D0"]
    ]  # fmt: skip
    jobs = [launch[0] for group in groups[2:] for launch in group]
    assert [(j.barrier.rank, j.barrier.size, j.barrier.turn_s) for j in jobs if j.barrier] == [
        (0, 2, 0.5), (1, 2, 0.5), (0, 2, 0.5), (1, 2, 0.5)
    ]  # fmt: skip
    assert len({job.barrier.folder for job in jobs if job.barrier}) == 2
    assert [job.timeout_s for job in jobs] == [20.0, None, None, 20.0]  # the others' turns are not its own time
    assert plan.launches[0][0].barrier is None


@pytest.mark.parametrize(
    ("fields", "gpus"), [({"placement": Placement(jobs=2)}, 0), ({"placement": Placement(per_device=True)}, 2)]
)
def test_what_is_several_processes_cannot_take_turns(fields: dict[str, object], gpus: int) -> None:
    with pytest.raises(InvalidInput, match="several processes"):
        planned(
            benchmark("a"),
            benchmark("b", **fields),
            gpus=gpus,
            options=Options(interleave=True, turns=1.0),
        )

"""A benchmark's status is that of its launches, and of its checks."""

from __future__ import annotations

import pytest
from suite_runs import benchmark, launch, measured

from benchwright.domain.benchmark import Placement
from benchwright.domain.job import Job
from benchwright.domain.run import Launch, Plan
from benchwright.domain.status import Reason, Status
from benchwright.pipeline.assembly import result_of


def plan(*ids: str) -> Plan:
    jobs = tuple(Job(id=i, benchmark="resnet", argv=("x",), cwd="/", stream="s", log="l") for i in ids)
    return Plan(benchmarks=(benchmark(),), launches=(jobs,))


def test_a_good_result_carries_the_checks_that_always_run() -> None:
    result = result_of(benchmark(), plan("a"), [launch(5.0)])
    assert result.status is Status.OK
    assert [c.layer for c in result.checks] == ["error", "ensure_rate", "loss"]


def test_no_rate_is_no_data_and_a_rate_of_0_invalid() -> None:
    nothing = result_of(benchmark(), plan("a"), [Launch(job="a", status=Status.OK)])
    assert (nothing.status, nothing.reason) == (Status.FAILED, Reason.NO_DATA)
    zero = result_of(benchmark(), plan("a"), [launch(0.0)])
    assert (zero.status, zero.reason) == (Status.FAILED, Reason.INVALID)
    assert zero.detail == "rate is 0, which is not above 0 in every launch"


def test_a_failed_check_fails_only_if_it_was_named() -> None:
    apart = [
        launch(5.0, seat=n, facts={"measured_ns": (n * 8, n * 8 + 10)}) for n in range(2)
    ]  # 4 of 20 measured together
    two = benchmark(placement=Placement(jobs=2))
    assert result_of(two, plan("a", "b"), apart).status is Status.OK
    named = result_of(two, plan("a", "b"), apart, validations=("planning",))
    assert (named.status, named.reason) == (Status.FAILED, Reason.INVALID)
    assert "20.0 %" in (named.detail or "")


def test_a_launch_that_failed_says_why_itself() -> None:
    crashed = Launch(job="a", status=Status.FAILED, reason=Reason.CRASHED, detail="exit code 1")
    result = result_of(benchmark(), plan("a"), [crashed])
    assert (result.reason, result.detail) == (Reason.CRASHED, "exit code 1")


@pytest.mark.parametrize("recorded", [0, 1])
def test_an_unfinished_benchmark_is_not_checked(recorded: int) -> None:
    result = result_of(benchmark(), plan("a", "b"), [launch(5.0, more=(measured("loss", 1.0),))][:recorded])
    assert (result.status, result.checks) == ((Status.PENDING, Status.INTERRUPTED)[recorded], ())

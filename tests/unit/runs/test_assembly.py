"""A benchmark's status is that of its launches, and of its checks."""

from __future__ import annotations

import builders
import pytest
from builders import failed_launch, job
from suite_runs import benchmark, launch, measured, run

from benchwright.core.benchmark import Placement
from benchwright.core.run import Launch, Plan
from benchwright.core.status import Reason, Status
from benchwright.report.html.reporter import HtmlReporter
from benchwright.report.markdown import MarkdownReporter
from benchwright.report.screen import ScreenReporter
from benchwright.results.after_run import report_of
from benchwright.runs.assembly import result_of


def plan(*ids: str) -> Plan:
    jobs = tuple(job(id=i, benchmark="resnet") for i in ids)
    return Plan(benchmarks=(benchmark(),), launches=(jobs,))


def test_a_good_result_carries_the_checks_that_always_run() -> None:
    result = result_of(benchmark(), plan("a"), [launch(5.0)])
    assert result.status is Status.OK
    assert [c.layer for c in result.checks] == ["error", "ensure_rate", "loss"]


def test_of_processes_that_ran_together_the_one_that_crashed_is_named_not_those_that_waited_for_it() -> None:
    waited, crashed = (
        Launch(job=job, status=Status.FAILED, reason=reason, detail=job)
        for job, reason in (("waited", Reason.TIMED_OUT), ("crashed", Reason.CRASHED))
    )
    result = result_of(benchmark(), plan("waited", "crashed"), [waited, crashed])
    assert (result.reason, result.detail) == (Reason.CRASHED, "crashed: crashed")
    assert result.checks[0].explanation == "2 of 2 launches failed; crashed crashed: crashed"
    assert result_of(benchmark(), plan("waited"), [waited]).reason is Reason.TIMED_OUT


def test_no_rate_is_no_data_and_a_rate_of_0_invalid() -> None:
    nothing = result_of(benchmark(), plan("a"), [builders.launch(job="a")], promises_rate=True)
    assert (nothing.status, nothing.reason) == (Status.FAILED, Reason.NO_DATA)
    zero = result_of(benchmark(), plan("a"), [launch(0.0)], promises_rate=True)
    assert (zero.status, zero.reason) == (Status.FAILED, Reason.INVALID)
    assert zero.detail == "rate is 0, not above 0 in every launch"


def test_a_failed_check_fails_only_if_it_was_named() -> None:
    apart = [
        launch(5.0, seat=n, facts={"measured_ns": (n * 8, n * 8 + 10)}) for n in range(2)
    ]  # 4 of 20 measured together
    two = benchmark(placement=Placement(jobs=2))
    assert result_of(two, plan("a", "b"), apart).status is Status.OK
    named = result_of(two, plan("a", "b"), apart, validations=("planning",))
    assert (named.status, named.reason) == (Status.FAILED, Reason.INVALID)
    assert "20.0 %" in (named.detail or "")


@pytest.mark.parametrize(("later", "said"), [(8, "20.0"), (2, "80.0"), (1, None), (0, None)])
def test_processes_measured_apart_are_told_though_nobody_asked(later: int, said: str | None) -> None:
    apart = [launch(5.0, seat=n, facts={"measured_ns": (n * later, n * later + 10)}) for n in range(2)]
    two = benchmark(placement=Placement(jobs=2), notes=("first",))
    found = result_of(two, plan("a", "b"), apart)
    text = f"its processes were measured together for only {said} % of the time; otherwise the load was lighter"
    assert found.status is Status.OK
    assert found.benchmark.notes == (("first",) if said is None else ("first", text))
    for reporter in (ScreenReporter(), MarkdownReporter(), HtmlReporter()):
        shown = " ".join(reporter.render(report_of(run(found))).split())
        assert ("measured together for only" in shown) is (said is not None)
    assert result_of(two, plan("a", "b"), apart, validations=("planning",)).benchmark.notes == ("first",)


def test_a_launch_that_failed_says_why_itself() -> None:
    crashed = failed_launch(job="a", detail="exit code 1")
    result = result_of(benchmark(), plan("a"), [crashed])
    assert (result.reason, result.detail) == (Reason.CRASHED, "exit code 1")


@pytest.mark.parametrize("recorded", [0, 1])
def test_an_unfinished_benchmark_is_not_checked(recorded: int) -> None:
    result = result_of(benchmark(), plan("a", "b"), [launch(5.0, more=(measured("loss", 1.0),))][:recorded])
    assert (result.status, result.checks) == ((Status.PENDING, Status.INTERRUPTED)[recorded], ())

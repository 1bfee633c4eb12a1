"""What every reporter must do with any run."""

from __future__ import annotations

import math
from typing import Any

import builders
import pytest
from builders import benchmark, measurement
from plugin_package import variants

from benchwright.analysis.summary import summarize
from benchwright.core.aggregates import aggregate
from benchwright.core.metric import MetricSpec
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.core.status import Reason, Status
from benchwright.report.base import Report, Reporter
from benchwright.report.registry import REPORTERS, reporter_named

SPEC = MetricSpec(name="speed", pattern="x", aggregate="average")


def launch(*values: float, **fields: Any) -> Launch:
    return builders.launch(measurement(*values, metric="speed", source="log", aggregate="average"), **fields)


def result(status: Status, *launches: Launch, **fields: Any) -> Result:
    return builders.result(benchmark("b", metrics=(SPEC,), result_prefix="b"), *launches, status=status, **fields)


RUNS = {
    "nothing": (),
    "ok": (result(Status.OK, *(launch(1.0, 3.0) for _ in range(6))),),
    "failed": (
        result(Status.FAILED, launch(status=Status.FAILED, detail="x\n" * 300), reason=Reason.CRASHED, detail="why"),
    ),
    "skipped": (result(Status.SKIPPED, reason=Reason.LACKS_DEVICES, detail="needs 8 GPUs"),),
    "interrupted": (result(Status.INTERRUPTED, launch(1.0)),),
    "pending": (result(Status.PENDING),),
    "not finite": (result(Status.OK, launch(math.nan, math.inf), launch(1.0)),),
    "odd text": (result(Status.OK, launch(1.0, notes=(Note(text="\x1b[31m é \x00 " + "w" * 500),))),),
}


@pytest.fixture(params=variants(REPORTERS))
def reporter(request: pytest.FixtureRequest, plugins: None) -> Reporter:
    return reporter_named(request.param)


def report(*results: Result) -> Report:
    run = builders.run(*results, id="r")
    summaries = {r.benchmark.name: summarize(r.counted) for r in results}
    return Report(run=run, summaries=summaries, aggregate=aggregate, log_tails={"b.D0": ["last words"]})


@pytest.mark.parametrize("case", RUNS.values(), ids=RUNS.keys())
def test_any_run_is_rendered_whole_and_the_same_every_time(reporter: Reporter, case: tuple[Result, ...]) -> None:
    text = reporter.render(report(*case))
    assert text.endswith("\n")
    assert reporter.render(report(*case)) == text


def test_the_measured_value_is_in_the_text(reporter: Reporter) -> None:
    text = reporter.render(report(result(Status.OK, *(launch(600.0, 613.0) for _ in range(6)))))
    assert "606.5" in text  # their average
    assert "speed" in text


def test_it_is_known_by_the_name_of_its_entry_point(reporter: Reporter) -> None:
    assert reporter.name in REPORTERS

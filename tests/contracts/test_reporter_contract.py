"""What every reporter must do with any run."""

from __future__ import annotations

import math
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from machines import MACHINE

from benchwright.analysis.summary import summarize
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, MetricSpec
from benchwright.core.note import Note
from benchwright.core.numbers.aggregates import aggregate
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.report.base import ENTRY_POINT_GROUP, Report, Reporter

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
REPORTERS = PROJECT["entry-points"][ENTRY_POINT_GROUP]
SPEC = MetricSpec(name="speed", pattern="x", aggregate="average")


def launch(*values: float, status: Status = Status.OK, **fields: object) -> Launch:
    m = Measurement(
        metric="speed", unit="items/s", direction=Direction.HIGHER, samples=values, source="log", aggregate="average"
    )
    return Launch(job="b.D0", status=status, measurements=(m,), **fields)  # type: ignore[arg-type]


def result(status: Status, *launches: Launch, **fields: object) -> Result:
    workload = Command(argv=("x",), cwd="/")
    benchmark = Benchmark(name="b", workload=workload, source="t", metrics=(SPEC,), result_prefix="b")
    return Result(benchmark=benchmark, status=status, launches=launches, **fields)  # type: ignore[arg-type]


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


@pytest.fixture(params=REPORTERS.values(), ids=REPORTERS.keys())
def reporter(request: pytest.FixtureRequest) -> Reporter:
    module, _, name = request.param.partition(":")
    made: Reporter = getattr(import_module(module), name)()
    return made


def report(*results: Result) -> Report:
    run = Run(id="r", name="r", started="s", folder="/f", status=Status.OK, machine=MACHINE, results=results)
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

"""What every delivery must do with any run."""

from __future__ import annotations

from pathlib import Path

import builders
import pytest
from builders import benchmark, launch, measurement, result
from msgspec.structs import replace
from plugin_package import variants

from benchwright.core.run import Run
from benchwright.core.status import Reason, Status
from benchwright.options.table import Options
from benchwright.runs.delivery import DELIVERIES, Delivery, NotReported, adding, deliver

ASKING = {"fai-pep": {"local_reporter": "delivered"}}
RESULTS = {
    "nothing": (),
    "ok": (result(benchmark("b", result_prefix="b"), launch(measurement(1.0, 2.0))),),
    "failed": (result(benchmark("b"), launch(status=Status.FAILED), status=Status.FAILED, reason=Reason.CRASHED),),
    "pending": (result(benchmark("b"), status=Status.PENDING),),
}


@pytest.fixture(params=variants(DELIVERIES))
def delivery(
    request: pytest.FixtureRequest, plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Delivery:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_DIARY", "diary.txt")
    found = DELIVERIES.load(request.param)(Options(**ASKING.get(request.param, {})), tmp_path / "base")
    assert found is not None
    return found


@pytest.fixture(params=RESULTS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    (tmp_path / "run").mkdir()
    return replace(builders.run(*RESULTS[request.param]), folder=str(tmp_path / "run"))


def test_any_run_can_be_delivered_also_twice(delivery: Delivery, run: Run) -> None:
    if (add := adding([delivery])) is not None:
        add(run, [r.benchmark.name for r in run.results])
    for _ in range(2):
        assert all(line.strip() for line in deliver(run, [delivery]))


def test_one_that_fails_does_not_keep_the_others_from_it(plugins: None, run: Run, tmp_path: Path) -> None:
    from benchwright_test_plugins.delivery import Diary

    deliveries = [Diary(str(tmp_path)), Diary(str(tmp_path / "diary.txt"))]
    with pytest.raises(NotReported, match="the run is complete, but not in ") as caught:
        list(deliver(run, deliveries))
    assert caught.value.run is run
    assert (tmp_path / "diary.txt").read_text() == f"{run.id} {run.status.value}\n"


@pytest.mark.compat
def test_nothing_is_delivered_that_nobody_asked_for(
    plugins: None, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_DIARY", raising=False)
    assert DELIVERIES.load("fai-pep")(Options(), tmp_path) is None
    assert DELIVERIES.load("diary")(Options(), tmp_path) is None

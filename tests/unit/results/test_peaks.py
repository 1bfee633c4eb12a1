"""Peaks of other runs on the same machine: looked up only where they are needed, and never at the cost of a report."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import MACHINE
from efficient_runs import peak, working
from msgspec.structs import replace
from suite_runs import launch, result, run

from benchwright.analysis.efficiency import run_efficiencies
from benchwright.core.efficiency import CPU, FLOPS, Work
from benchwright.core.machine import Accelerator
from benchwright.core.run import Run
from benchwright.core.status import Reason, Status
from benchwright.results.kept_runs import Results
from benchwright.results.peaks import needs_peaks, peaks_for, peaks_of_base
from benchwright.runs.assembly import checked_against_peaks

FP32 = Work(FLOPS, "fp32", CPU)
TELLING = run(result("b", working(50.0)), id="b.1")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results.choose(tmp_path / "base", None, {})


def keep(results: Results, *runs: Run) -> None:
    for each in runs:
        results.store.ingest(each, digest=each.id)


def measured(id_: str, best: float, **fields: object) -> Run:
    return replace(run(peak([best]), id=id_), **fields)


def test_the_best_of_the_newest_runs_of_the_same_machine_counts(results: Results) -> None:
    elsewhere = replace(MACHINE, cpu="another")
    keep(results, measured("p.1", 100.0), measured("p.2", 120.0), measured("p.3", 500.0, machine=elsewhere), TELLING)
    with results:
        found = peaks_for([TELLING], results)
    assert (found["b.1"][FP32].value, found["b.1"][FP32].run) == (120.0, "p.2")


def test_a_peak_of_another_driver_proves_nothing(results: Results) -> None:
    def driven_by(driver: str) -> dict[str, object]:
        return {"machine": replace(MACHINE, accelerators=(Accelerator(index=0, name="H200", driver=driver),))}

    telling = replace(TELLING, **driven_by("580.2"))
    keep(results, measured("p.1", 100.0, **driven_by("580.2")), measured("p.2", 120.0, **driven_by("590.1")), telling)
    with results:
        found = peaks_for([telling], results)
    assert (found["b.1"][FP32].value, found["b.1"][FP32].run) == (100.0, "p.1")


def test_a_peak_that_had_to_share_the_cores_then_is_none_now(results: Results) -> None:
    keep(results, run(peak([100.0], got=0.5), id="p.1"))
    with results:
        assert not peaks_for([TELLING], results).get("b.1")


def test_no_store_is_opened_or_made_for_what_needs_none(results: Results, tmp_path: Path) -> None:
    own = run(result("b", working(50.0)), peak([100.0]))
    assert not needs_peaks(own)
    assert not needs_peaks(run(result("b", launch(50.0))))
    with results:
        assert peaks_for([own], results) == {}
        assert peaks_for([TELLING], results) == {}  # there is no store
    assert not (tmp_path / "base" / "store.db").exists()


def test_a_store_that_cannot_be_used_costs_no_report(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("no database, but long enough to be looked at as one")
    assert peaks_of_base(TELLING, tmp_path, None) == {}
    assert peaks_of_base(TELLING, tmp_path, "nothing://at.all") == {}


def test_the_run_itself_is_no_other_run(results: Results) -> None:
    mixed = run(result("b", working(50.0, name="flops_per_item.bf16")), peak([100.0]), id="m.1")
    keep(results, mixed)
    with results:
        assert peaks_for([mixed], results) == {}


def test_more_than_the_peak_fails_whoever_assembles_the_run() -> None:
    bad, good = checked_against_peaks([result("b", working(150.0)), peak([100.0])])
    assert (bad.status, bad.reason) == (Status.FAILED, Reason.INVALID)
    assert "150 % of the 100 FLOP/s that matmul sustained" in (bad.detail or "")
    assert good.status is Status.OK


def test_a_peak_of_long_ago_proves_nothing(results: Results) -> None:
    keep(results, measured("p.1", 100.0, started="2026-10-01T10:00:00+00:00"), measured("p.2", 80.0, started="?"))
    with results:
        assert not peaks_for([TELLING], results).get("b.1")


def test_a_run_whose_own_peak_cannot_be_trusted_is_given_an_earlier_one(results: Results) -> None:
    keep(results, measured("p.1", 100.0))
    bad = run(result("b", working(50.0)), peak([48.0], got=0.3), id="m.1")
    with results:
        found = peaks_for([bad], results)["m.1"]
    assert run_efficiencies(bad.results, found)["b"][0].share == pytest.approx(0.5)

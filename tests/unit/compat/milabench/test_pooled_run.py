"""Several runs in one report, as milabench pools them."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from suite_runs import failed, launch, result, run

from benchwright.compat.milabench.run_folder import MilabenchImporter
from benchwright.compat.milabench.score import milabench_score
from benchwright.compat.milabench.score_rule import pooled_run
from benchwright.core.run import Launch, Run
from benchwright.core.status import Status

REAL = Path(__file__).parents[3] / "compat" / "imports" / "milabench" / "rijubigo.2023-03-24"


def named(name: str, made: Run, **change: Any) -> Run:
    return replace(made, id=name, uid="", name=name, folder=f"/runs/{name}", **change)


def imported(*rates: float, device: int | None = None, weight: float = 1.0, enabled: bool = True) -> Launch:
    facts = {"milabench": {"success": True, "device": device, "weight": weight, "enabled": enabled}}
    return launch(*rates, facts=facts)


def test_rates_are_pooled_before_the_extremes_are_dropped() -> None:
    a = named("a", run(result("b", imported(1.0, 10.0, 20.0))))
    b = named("b", run(result("b", imported(30.0, 900.0))))
    (row,) = milabench_score(pooled_run([a, b])).rows
    assert (row.n, row.perf, row.std) == (2, 20.0, pytest.approx(math.sqrt(200 / 3) / 20))


def test_two_halves_of_a_real_run_give_the_figures_of_the_whole(tmp_path: Path) -> None:
    halves = []
    for repeat in ("R0", "R1"):
        folder = tmp_path / repeat
        folder.mkdir()
        for file in REAL.glob(f"*.{repeat}.data"):
            (folder / file.name).write_bytes(file.read_bytes())
        halves += MilabenchImporter().read(folder)
    (whole,) = MilabenchImporter().read(REAL)
    pooled = milabench_score(pooled_run(halves))
    assert pooled.rows == milabench_score(whole).rows
    rates = sorted(
        said["data"]["rate"]
        for file in REAL.glob("*.data")
        for line in file.read_text().splitlines()
        if (said := json.loads(line))["event"] == "data" and "rate" in said["data"]
    )
    assert pooled.value == pytest.approx(statistics.fmean(rates[1:-1]) + 1)


def test_the_same_device_of_two_runs_is_one_device() -> None:
    a = named("a", run(result("b", imported(10.0, device=0), imported(100.0, device=1))))
    b = named("b", run(result("b", imported(30.0, device=0))))
    (row,) = milabench_score(pooled_run([a, b])).rows
    assert (row.n, row.per_device, row.score) == (3, {"0": 20.0, "1": 100.0}, 120.0)


def test_a_benchmark_of_one_run_only_is_in_the_table() -> None:
    a = named("a", run(result("x", imported(99.0))))
    b = named("b", run(result("y", imported(9999.0)), failed("x")))
    pooled = pooled_run([a, b])
    assert [(row.name, row.n, row.fail) for row in milabench_score(pooled).rows] == [("x", 2, 1), ("y", 1, 0)]
    assert (pooled.status, pooled.result("x").status) == (Status.FAILED, Status.FAILED)


def test_weight_and_enabled_are_the_last_runs() -> None:
    a = named("a", run(result("b", imported(10.0, weight=1.0))))
    b = named("b", run(result("b", imported(10.0, weight=5.0, enabled=False))))
    assert [(r.weight, r.enabled) for r in milabench_score(pooled_run([a, b])).rows] == [(5.0, False)]
    assert [(r.weight, r.enabled) for r in milabench_score(pooled_run([b, a])).rows] == [(1.0, True)]


def test_a_run_that_is_named_twice_counts_once() -> None:
    a = named("a", run(result("b", imported(10.0))))
    assert pooled_run([a, a]) == a


def test_launches_of_different_runs_are_not_taken_for_processes_of_one_launch() -> None:
    a, b = (named(name, run(result("b", imported(10.0), imported(20.0)))) for name in "ab")
    positions = [x.position for x in pooled_run([a, b]).results[0].launches]
    assert len(set(positions)) == 2 * len({x.position for x in a.results[0].launches})


def test_runs_of_different_machines_are_pooled_with_a_note() -> None:
    a = named("a", run(result("b", imported(10.0))))
    same, other = named("b", a), named("c", a, machine=replace(a.machine, cpu="another"))
    assert not any("different machines" in note.text for note in pooled_run([a, same]).notes)
    notes = [note.text for note in pooled_run([a, other]).notes]
    assert notes[-2:] == ["2 runs pooled as milabench does: a, c", "the pooled runs are from different machines"]

"""Files about results that were ever released stay readable, and those written today are like the newest sample.

See test_formats.py for what to do when a format changes.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.aggregates import aggregate
from benchwright.core.comparison import Comparison, Difference, Effect, Verdict
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import Direction
from benchwright.core.summary import Interval
from benchwright.report.comparison import comparison_body
from benchwright.report.export import read_export
from benchwright.results.kept_runs import Results
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.run_folder import RunFolder
from benchwright.store.base import RunFilter, open_store

HERE = Path(__file__).parent
SAMPLES = sorted((HERE / "results").glob("v*"), key=lambda p: int(p.name[1:]))
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.name)


def results_in(base: Path) -> Results:
    return Results(BaseFolder(base), str(base / "store.db"))


@every_sample
def test_baselines_are_read(sample: Path, tmp_path: Path) -> None:
    shutil.copy(sample / "baselines.json", tmp_path)
    with results_in(tmp_path) as results:
        assert results.baselines() == {"main": "encode.2026-11-15_04:18:00"}


def test_baselines_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "baselines.json").write_text('{"format":"benchwright-baselines","version":99,"names":{}}')
    with results_in(tmp_path) as results, pytest.raises(InvalidInput, match="version 99"):
        results.baselines()


@every_sample
def test_annotations_are_read(sample: Path) -> None:
    assert RunFolder(sample).read_annotation() == "indent=1: readable, <slow> 🐢"


@every_sample
def test_a_store_is_migrated_and_whole(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.executescript((sample / "store.sql").read_bytes().decode())  # line ends as they are
    connection.close()
    expected = read_export(HERE / "exports" / "v1.json")
    with open_store(str(path), aggregate=aggregate) as store:
        store.migrate()
        assert store.check() == []
        assert {row.id for row in store.runs(RunFilter())} == {run.id for run in expected}
        assert repr([store.load(run.id) for run in expected]) == repr(expected)  # NaN is not equal to itself
        assert store.baselines() == {"main": expected[0].id}


def test_a_comparison_has_the_keys_of_the_newest_sample() -> None:
    effect = Effect(
        benchmark="b",
        metric="m",
        unit=None,
        direction=Direction.LOWER,
        labels={},
        control=1.0,
        treatment=1.0,
        ratio=1.0,
        interval=Interval(1.0, 1.0),
        p_value=1.0,
        q_value=1.0,
        verdict=Verdict.SAME,
        launches=(6, 6),
        paired=False,
    )
    difference = Difference(what="kernel", control="1", treatment="2", severe=False)
    comparison = Comparison(control="a", treatment="b", margin=0.02, effects=(effect,), differences=(difference,))
    today = json.loads(json.dumps(comparison_body(comparison)))
    sample = json.loads((SAMPLES[-1] / "comparison.json").read_text())
    assert (today["format"], today["version"]) == (sample["format"], sample["version"])
    assert today.keys() == sample.keys()
    assert keys_of(today["effects"]) == keys_of(sample["effects"])
    assert today["effects"][0]["interval"].keys() == sample["effects"][0]["interval"].keys()


def keys_of(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(rows[0])

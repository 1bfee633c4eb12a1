"""The table of an A/B on a terminal: long names are headings, and what several rows would repeat is said once."""

from __future__ import annotations

import pytest

from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.metric import Direction
from benchwright.core.summary import Interval
from benchwright.report.tables.ab import ab_text


def effect(benchmark: str, metric: str, advice: str | None = None) -> Effect:
    return Effect(
        benchmark=benchmark, metric=metric, unit="s", direction=Direction.LOWER, labels={}, control=1.0, treatment=1.25,
        ratio=1.25, interval=None if advice else Interval(1.1, 1.4), p_value=None, q_value=None,
        verdict=Verdict.INCONCLUSIVE if advice else Verdict.REGRESSED, launches=(8, 8), paired=True, advice=advice,
        pairs=() if advice else (1.2, 1.3),
    )  # fmt: skip


def text(*effects: Effect, width: int = 80) -> list[str]:
    comparison = Comparison(control="v1", treatment="HEAD", margin=0.01, effects=effects)
    return ab_text(comparison, width=width).splitlines()


def test_names_have_a_column_if_there_is_room_and_are_headings_if_not() -> None:
    short = text(effect("sort", "time"), effect("load", "time"))
    assert short[3].split() == ["benchmark", "metric", "effect", "verdict", "launches"]
    long = "model.py::SequentialWithALongName@torch-eager"
    lines = text(effect(long, "time.to_first_result"), effect(long, "latency"), effect("other", "latency"))
    assert lines[3].split() == ["metric", "effect", "verdict", "launches"]
    assert [line.strip() for line in lines if not line.startswith("   ")].count(long) == 1
    assert " other" in lines
    assert all("…" not in line for line in lines[:9])
    assert max(map(len, lines)) <= 80


def test_a_wide_terminal_shows_both_values() -> None:
    lines = text(effect("sort", "time"), width=120)
    assert "control → treatment" in lines[3]
    assert "1 s → 1.25 s" in lines[4]


@pytest.mark.parametrize("name", ["sort", "model.py::SequentialWithALongName@torch-eager-and-more"])
def test_what_rows_have_in_common_is_said_once(name: str) -> None:
    lines = text(effect(name, "latency", "too few"), effect(name, "time.load", "too few"), effect(name, "x", "other"))
    assert [line.strip() for line in lines if line.strip() in ("too few", "other")] == ["too few", "other"]


def test_nothing_to_compare_is_no_table() -> None:
    assert text() == [" control    v1", " treatment  HEAD", "", " nothing to compare"]

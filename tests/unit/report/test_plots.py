"""Drawings in the terminal."""

from __future__ import annotations

import math

import builders
import pytest
from builders import run as make_run
from example_reports import ordinary_report, report, result
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.summary import summarize
from benchwright.core.run import Result
from benchwright.core.status import Reason, Status
from benchwright.report.plots import PastResult, history_plot, run_plot
from benchwright.report.text.canvas import axis_marks, histogram, scatter

from .test_pictures import measured


def rows_of_dots(lines: list[str]) -> list[str]:
    return [line.partition("┤")[2] or line.partition("│")[2] for line in lines if "┤" in line or "│" in line]


def test_the_first_point_is_at_the_left_and_the_largest_at_the_top() -> None:
    rows = rows_of_dots(scatter([(0, 10), (1, 5), (2, 0)], width=40, height=5, unit=None, below=""))
    assert rows[0].strip()
    assert rows[0].index(rows[0].strip()) == 0
    assert len(rows[-1]) == max(map(len, rows))


def test_marks_on_the_left_name_the_row_of_their_value() -> None:
    lines = scatter([(0, 0), (1, 100)], width=40, height=9, unit=None, below="")
    (row,) = [n for n, line in enumerate(lines) if line.split("┤")[0].strip() == "50"]
    assert row == 4


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60), st.integers(30, 120))
def test_no_line_is_wider_than_the_terminal(values: list[float], width: int) -> None:
    lines = scatter(list(enumerate(values)), width=width, height=6, unit="s", below="x")
    lines += histogram(values, width=width, rows=5, unit="s")
    if any(v and not 1e-12 < abs(v) < 1e12 for v in values if math.isfinite(v)):
        return  # numbers of such sizes are long by themselves
    assert max(map(len, lines), default=0) <= max(width, 40)


def test_bars_count_every_finite_value_once() -> None:
    lines = histogram([1, 1, 2, 3, 3, 3, math.nan, math.inf], width=60, rows=3, unit="items/s")
    assert [int(line.split()[-1]) for line in lines] == [2, 1, 3]
    assert lines[2].count("█") > lines[0].count("█")
    assert histogram([2.0, 2.0], width=60, rows=3, unit="s") == [" all 2 are 2 s"]


@pytest.mark.parametrize(("high", "unit", "last"), [(0.05, "s", "ms"), (3e9, "B", "GiB"), (2e-5, "s", "µs")])
def test_marks_are_in_the_unit_that_reads_well(high: float, unit: str, last: str) -> None:
    marks = axis_marks(0, high, unit, 4)
    assert all(text.endswith(last) for _, text in marks)
    assert len({text for _, text in marks}) == len(marks)


def test_close_values_have_marks_that_differ() -> None:
    marks = axis_marks(1000.1, 1000.2, None, 4)
    assert len({text for _, text in marks}) == len(marks) >= 2


def test_a_run_is_drawn_with_every_benchmark_and_what_is_not_drawn_is_said() -> None:
    text = run_plot(ordinary_report(), range(4), None, most=4)
    assert "How much" in text or "Rate, items/s" in text
    assert "6 launches, 720 samples, 72 of the warm-up not drawn" in text
    assert "llama  failed: CUDA out of memory" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_of_many_benchmarks_the_others_are_counted() -> None:
    text = run_plot(report([measured(f"b{n}", 1.0, 2.0) for n in range(5)]), range(5), None, most=2)
    assert "3 more benchmarks not drawn; name one: bw plot nightly" in text


def past(number: int, of: Result, host: str = "node-7") -> PastResult:
    run = make_run(of, id=f"run.{number}", machine=builders.machine(hostname=host))
    return PastResult(run, of, next(iter(summarize(of.counted)), None))


def test_a_history_has_a_row_for_each_run_failed_ones_too() -> None:
    broken = result("a", (), Status.FAILED, reason=Reason.CRASHED)
    text = history_plot("a", [past(1, measured("a", 10, 11, 12)), past(2, broken), past(3, measured("a", 20))], 80)
    rows = [line for line in text.splitlines() if line.startswith(" run.")]
    assert [row.split()[0] for row in rows] == ["run.1", "run.2", "run.3"]
    assert "failed: crashed" in rows[1]
    assert rows[0].index("┃") < rows[2].index("┃")
    assert "machines" not in text


def test_a_history_of_several_machines_says_so() -> None:
    text = history_plot("a", [past(1, measured("a", 10)), past(2, measured("a", 20), host="other")], 80)
    assert "⚠ from 2 machines" in text
    assert "other" in text


def test_another_unit_is_not_drawn_on_the_same_axis() -> None:
    text = history_plot("a", [past(1, measured("a", 10, unit="GB/s")), past(2, measured("a", 20))], 80)
    assert "10 GB/s (another unit)" in text


def test_a_history_without_numbers_says_so() -> None:
    broken = result("a", (), Status.FAILED, reason=Reason.CRASHED)
    assert history_plot("a", [past(1, broken)], 80) == " a: no numbers\n"

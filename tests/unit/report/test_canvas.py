"""The line of a history in the terminal."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.report.figures.text import axis_marks, scatter


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
    if any(v and not 1e-12 < abs(v) < 1e12 for v in values if math.isfinite(v)):
        return  # numbers of such sizes are long by themselves
    assert max(map(len, lines), default=0) <= max(width, 40)


@pytest.mark.parametrize(("high", "unit", "last"), [(0.05, "s", "ms"), (3e9, "B", "GiB"), (2e-5, "s", "µs")])
def test_marks_are_in_the_unit_that_reads_well(high: float, unit: str, last: str) -> None:
    marks = axis_marks(0, high, unit, 4)
    assert all(text.endswith(last) for _, text in marks)
    assert len({text for _, text in marks}) == len(marks)


def test_close_values_have_marks_that_differ() -> None:
    marks = axis_marks(1000.1, 1000.2, None, 4)
    assert len({text for _, text in marks}) == len(marks) >= 2

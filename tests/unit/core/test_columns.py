"""Millions of numbers give what a few give: each function on an array, against Python's own arithmetic."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Sequence

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core import columns

FINITE = st.floats(-1e12, 1e12, allow_nan=False)
few = st.lists(FINITE, min_size=1, max_size=20)


def many(values: Sequence[float]) -> array[float]:
    """The same numbers over and over, so many that numpy takes care of them."""
    times = columns.MANY // len(values) + 1
    return array("d", list(values) * times)


@given(few)
def test_order_and_median_do_not_depend_on_who_works_them_out(values: list[float]) -> None:
    column = many(values)
    kept = column[:]
    assert list(columns.ordered(column)) == sorted(column)
    assert columns.median(column) == pytest.approx(statistics.median(column), rel=1e-15)
    assert columns.median(values) == statistics.median(values)
    assert column == kept
    assert columns.median(column, overwrite=True) == pytest.approx(statistics.median(kept), rel=1e-15)


@given(few, st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(0, 10_000))
def test_what_is_not_finite_is_found_where_it_is(values: list[float], odd: float, place: int) -> None:
    column = many(values)
    assert (columns.not_finite(column), columns.first_not_finite(column)) == (0, None)
    place %= len(column)
    column[place] = odd
    assert (columns.not_finite(column), columns.first_not_finite(column)) == (1, place)
    assert (columns.not_finite([*values, odd]), columns.first_not_finite([*values, odd])) == (1, len(values))


@given(few)
def test_counts_and_sizes_are_those_of_plain_python(values: list[float]) -> None:
    column = many(values)
    times = len(column) // len(values)
    assert columns.not_positive(column) == times * columns.not_positive(values)
    assert columns.magnitudes(column) == columns.magnitudes(values)
    assert sorted(set(columns.above(column, 1.0))) == sorted({v for v in values if v > 1.0})


@given(few, few)
def test_pairs_are_taken_one_by_one(left: list[float], right: list[float]) -> None:
    length = min(len(left), len(right))
    a, b = many(left[:length]), many(right[:length])
    assert list(columns.difference(a, b)) == [x - y for x, y in zip(a, b, strict=True)]
    assert list(columns.products(a, b)) == [x * y for x, y in zip(a, b, strict=True)]
    wanted = [x / y for x, y in zip(a, b, strict=True) if y > 0]
    assert list(columns.ratios(a, b)) == wanted
    assert list(columns.ratios(left[:length], array("d", right[:length]))) == wanted[: len(wanted) * length // len(a)]
    assert list(columns.ratios((3.0,), b)) == [3.0 / y for y in b if y > 0]


def test_series_are_joined_in_order() -> None:
    assert list(columns.joined([(1.0, 2.0), array("d", [3.0])])) == [1.0, 2.0, 3.0]
    assert columns.joined([(1.0,), (2.0,)]) == [1.0, 2.0]


def test_a_view_is_no_copy() -> None:
    column = many([1.0])
    assert numpy.shares_memory(columns._numpy(column), numpy.frombuffer(column))

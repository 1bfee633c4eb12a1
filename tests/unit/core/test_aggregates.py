"""Condensing the values of a launch, checked against numpy."""

from __future__ import annotations

import math
import warnings

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.aggregates import AggregateError, aggregate, workers_count
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import AGGREGATES

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150)
some_values = st.lists(finite, min_size=1, max_size=50)


def close(ours: float, theirs: float, values: list[float]) -> bool:
    largest = max(abs(v) for v in values)
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12 * largest * len(values))


@given(some_values)
def test_every_method_agrees_with_numpy(values: list[float]) -> None:
    theirs = {
        "average": numpy.mean(values),
        "median": numpy.median(values),
        "first": values[0],
        "last": values[-1],
        "min": numpy.min(values),
        "max": numpy.max(values),
        "count": len(values),
        "total": numpy.sum(values),
    }
    for method, expected in theirs.items():
        assert close(aggregate(method, values), float(expected), values), method


@given(some_values, st.floats(0, 100))
def test_percentiles_interpolate_linearly_as_numpy_does(values: list[float], percent: float) -> None:
    assert close(aggregate(f"p{percent:.6f}", values), float(numpy.percentile(values, round(percent, 6))), values)


@pytest.mark.parametrize(("method", "expected"), [("p0", 1), ("p50", 2.5), ("p90", 3.7), ("p99.9", 3.997), ("p100", 4)])
def test_percentiles_of_four_values(method: str, expected: float) -> None:
    assert aggregate(method, [4.0, 1.0, 3.0, 2.0]) == pytest.approx(expected)


@pytest.mark.parametrize("method", [m for m in (*AGGREGATES, "p50", "p90") if m not in ("first", "last", "count")])
@pytest.mark.parametrize("values", [[math.nan, 1.0, 2.0], [1.0, math.nan, 2.0], [1.0, 2.0, math.nan]])
def test_a_nan_anywhere_is_not_hidden(method: str, values: list[float]) -> None:
    assert math.isnan(aggregate(method, values, workers=2))


def test_first_last_and_count_do_not_look_at_the_other_values() -> None:
    values = [1.0, math.nan, 3.0]
    assert [aggregate(m, values) for m in ("first", "last", "count")] == [1.0, 3.0, 3.0]


def test_infinite_values_give_what_floating_point_says() -> None:
    assert aggregate("total", [math.inf, 1.0]) == math.inf
    assert math.isnan(aggregate("average", [math.inf, -math.inf]))
    assert aggregate("median", [1.0, math.inf, math.inf]) == math.inf
    assert aggregate("p50", [math.inf, math.inf]) == math.inf
    assert aggregate("total", [1.7e308, 1.7e308]) == math.inf


def test_ten_tenths_make_exactly_one() -> None:
    assert aggregate("total", [0.1] * 10) == 1.0


@pytest.mark.parametrize(("workers", "expected"), [(None, 12.0), (0, 12.0), (1, 12.0), (4, 3.0)])
def test_total_is_divided_by_the_workers_if_there_are_any(workers: int | None, expected: float) -> None:
    assert aggregate("total", [5.0, 7.0], workers) == expected


def test_average_aggregate_is_the_mean_times_the_workers() -> None:
    assert aggregate("average_aggregate", [5.0, 7.0], 4) == 24.0


@pytest.mark.parametrize("workers", [None, 0])
def test_average_aggregate_without_workers_is_an_error_that_says_what_to_set(workers: int | None) -> None:
    with pytest.raises(AggregateError, match="DEEPLEARNING_WORKERS_COUNT"):
        aggregate("average_aggregate", [5.0], workers)


@pytest.mark.parametrize("method", [m for m in (*AGGREGATES, "p50") if m not in ("count", "total")])
def test_no_values_have_no_number(method: str) -> None:
    with pytest.raises(AggregateError, match="no values"):
        aggregate(method, [], 2)


def test_no_values_can_be_counted_and_added() -> None:
    assert (aggregate("count", []), aggregate("total", [])) == (0.0, 0.0)


@pytest.mark.parametrize("method", ["averge", "p101", "p", "p-1", ""])
def test_an_unknown_method_is_refused(method: str) -> None:
    with pytest.raises(AggregateError, match="not a compute method"):
        aggregate(method, [1.0])


@given(st.lists(st.floats(), max_size=20), st.sampled_from([*AGGREGATES, "p1", "p99"]), st.none() | st.integers(0, 9))
def test_any_floats_give_a_float_or_an_aggregate_error(values: list[float], method: str, workers: int | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            assert isinstance(aggregate(method, values, workers), float)
        except AggregateError:
            pass


@pytest.mark.parametrize(("text", "expected"), [(None, None), ("", None), ("0", None), ("4", 4), (" 16 ", 16)])
def test_the_workers_count_is_read_from_the_environment(text: str | None, expected: int | None) -> None:
    assert workers_count({} if text is None else {"DEEPLEARNING_WORKERS_COUNT": text}) == expected


@pytest.mark.parametrize("text", ["four", "-1", "2.5", "1e3"])
def test_a_workers_count_that_is_no_number_is_the_users_error(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"DEEPLEARNING_WORKERS_COUNT.*not a number of workers"):
        workers_count({"DEEPLEARNING_WORKERS_COUNT": text})

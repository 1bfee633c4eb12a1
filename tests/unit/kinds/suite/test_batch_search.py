from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.kinds.suite.batch_sizes import Bounds, next_size


def search(largest: int, bounds: Bounds) -> list[int]:
    """The sizes that are tried where everything up to `largest` fits."""
    fits: dict[int, bool] = {}
    while (size := next_size(fits, bounds)) is not None:
        assert size not in fits
        assert 1 <= size <= bounds.most
        fits[size] = size <= largest
        assert len(fits) < 100
    return list(fits)


def found(largest: int, bounds: Bounds) -> int:
    return max((size for size in search(largest, bounds) if size <= largest), default=0)


def test_sizes_double_until_one_does_not_fit_and_then_the_gap_is_halved():
    assert search(100, Bounds()) == [8, 16, 32, 64, 128, 96, 112, 104]


def test_a_start_that_is_too_large_is_halved_down_to_one():
    assert search(3, Bounds(start=64)) == [64, 32, 16, 8, 4, 2, 3]
    assert search(0, Bounds(start=32)) == [32, 16, 8, 4, 2, 1]


def test_a_start_below_the_multiple_still_reaches_only_multiples():
    assert search(80, Bounds(start=5, multiple=64, most=128)) == [5, 10, 20, 40, 64, 128]


def test_the_limit_ends_it():
    assert search(10_000, Bounds(most=100)) == [8, 16, 32, 64, 96]
    assert search(10_000, Bounds(most=5)) == [5]


@given(
    largest=st.integers(0, 5000),
    start=st.integers(1, 3000),
    multiple=st.sampled_from([1, 2, 8, 64]),
    most=st.integers(1, 4000),
)
def test_it_finds_the_largest_multiple_that_fits_in_few_trials(largest, start, multiple, most):
    bounds = Bounds(start=start, multiple=multiple, most=most)
    reachable = min(largest, most)
    # Below the first multiple every size counts.
    expected = reachable - reachable % multiple if reachable >= multiple else reachable
    assert found(largest, bounds) == expected
    assert len(search(largest, bounds)) <= 2 * math.log2(6000) + 3


@pytest.mark.parametrize("most", [0, -5])
def test_there_is_always_something_to_try(most):
    assert next_size({}, Bounds(most=most)) == 1


def test_the_search_ends_when_the_largest_is_known_well_enough() -> None:
    bounds = Bounds(start=4096, multiple=8, within=0.02)
    limit, fits = 100_000, {}
    while (size := next_size(fits, bounds)) is not None:
        fits[size] = size <= limit
    largest = max(size for size, fitted in fits.items() if fitted)
    assert limit * 0.98 <= largest <= limit
    assert len(fits) <= 12, "a trial takes as long as a launch"

"""Percentiles and the bounds that their samples allow."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.analysis.percentiles import percentile_with_bound, samples_needed


@pytest.mark.parametrize(("percent", "needed"), [(90, 64), (97, 219), (99, 662), (10, 64), (1, 662)])
def test_the_fewest_samples_are_those_of_mlperf(percent: float, needed: int) -> None:
    assert samples_needed(percent) == needed


@pytest.mark.parametrize("percent", [0, 100])
def test_no_number_of_samples_bounds_the_extremes(percent: float) -> None:
    assert samples_needed(percent) is None
    assert percentile_with_bound([1.0] * 1000, percent).bound is None


def test_one_sample_short_of_enough_gives_no_bound_and_says_how_many_are_needed() -> None:
    values = [float(n) for n in range(64)]
    short = percentile_with_bound(values[:63], 90)
    assert (short.bound, short.needed) == (None, 64)
    assert percentile_with_bound(values, 90).bound == 62  # the last but one


def test_rates_are_bounded_from_below() -> None:
    found = percentile_with_bound([float(n) for n in range(100)], 10)
    assert found.bound is not None
    assert found.bound < found.value


@settings(max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=64, max_size=90), st.sampled_from([75.0, 90.0]))
def test_the_bound_is_one_of_the_samples_and_never_within_the_percentile(values: list[float], percent: float) -> None:
    found = percentile_with_bound(values, percent)
    assert found.bound in values
    assert found.bound is not None
    assert found.bound >= found.value


@settings(max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=64, max_size=90))
def test_low_percentiles_mirror_high_ones(values: list[float]) -> None:
    high = percentile_with_bound(values, 90).bound
    low = percentile_with_bound([-v for v in values], 10).bound
    assert high is not None
    assert low == -high


def test_correlated_samples_count_for_fewer() -> None:
    values = [float(n) for n in range(1000)]
    assert percentile_with_bound(values, 90, effective=50).bound is None
    wide, narrow = percentile_with_bound(values, 90, effective=100).bound, percentile_with_bound(values, 90).bound
    assert wide is not None
    assert narrow is not None
    assert wide > narrow


@pytest.mark.parametrize(("percent", "count", "truth"), [(90, 64, 0.9), (90, 500, 0.9), (99, 700, 0.99)])
def test_the_true_percentile_lies_beyond_the_bound_once_in_a_hundred(percent: float, count: int, truth: float) -> None:
    rng = random.Random(count)
    beyond = 0
    for _ in range(1000):
        bound = percentile_with_bound([rng.random() for _ in range(count)], percent).bound
        assert bound is not None
        beyond += bound < truth
    assert beyond <= 22  # 1 % and four standard errors

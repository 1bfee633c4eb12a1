"""Percentiles and the bounds that their samples allow."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.statistics.percentiles import bounded, samples_needed, slow_end
from benchwright.core.metric import Direction
from benchwright.core.summary import Percentile


def percentile_with_bound(values: list[float], percent: float, *, effective: float | None = None) -> Percentile:
    return bounded(sorted(values), percent, effective=effective)


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


@given(st.lists(st.floats(-1e6, 1e6), min_size=64, max_size=90), st.sampled_from([75.0, 90.0]))
def test_the_bound_is_one_of_the_samples_and_never_within_the_percentile(values: list[float], percent: float) -> None:
    found = percentile_with_bound(values, percent)
    assert found.bound in values
    assert found.bound is not None
    assert found.bound >= found.value


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


samples_of_launches = st.lists(st.lists(st.floats(-1e9, 1e9), max_size=60), max_size=8)


@given(samples_of_launches, st.sampled_from(Direction))
def test_the_slow_end_of_any_samples_lies_among_them_and_its_bound_not_within(
    series: list[list[float]], direction: Direction
) -> None:
    values = [v for samples in series for v in samples]
    found = slow_end(series, direction)
    wanted = (10, 5, 1) if direction is Direction.HIGHER else (90, 95, 99)
    assert tuple(p.percent for p in found) == wanted[: len(found)]
    outward = [-p.value if direction is Direction.HIGHER else p.value for p in found]
    slack = 1e-9 * max(map(abs, values), default=0)
    assert all(b >= a - slack for a, b in itertools.pairwise(outward))
    for p in found:
        assert min(values) - slack <= p.value <= max(values) + slack
        assert 1 <= p.independent <= p.samples == len(values)
        assert p.needed is not None
        assert (p.bound is None) is (p.independent < p.needed)
        if p.bound is not None:
            assert p.bound in values
            assert p.bound <= p.value + slack if direction is Direction.HIGHER else p.bound >= p.value - slack


@pytest.mark.parametrize(("count", "shown"), [(9, 0), (10, 1), (19, 1), (20, 2), (99, 2), (100, 3)])
def test_a_percentile_is_shown_once_a_sample_can_be_expected_beyond_it(count: int, shown: int) -> None:
    assert len(slow_end([[float(n) for n in range(count)]], Direction.LOWER)) == shown


@given(samples_of_launches.filter(any), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_a_sample_that_is_not_finite_leaves_nothing_to_describe(series: list[list[float]], odd: float) -> None:
    assert slow_end([*series, [odd]], Direction.LOWER) == ()


def test_one_sample_a_launch_describes_launches_and_not_samples() -> None:
    assert slow_end([[float(n)] for n in range(100)], Direction.LOWER) == ()


def test_launches_that_differ_are_worth_fewer_samples() -> None:
    rng = random.Random(9)
    alike = [[rng.gauss(1, 0.1) for _ in range(200)] for _ in range(6)]
    apart = [[v + 0.3 * (launch % 3) for v in samples] for launch, samples in enumerate(alike)]
    (wide, *_), (narrow, *_) = slow_end(apart, Direction.LOWER), slow_end(alike, Direction.LOWER)
    assert narrow.bound is not None
    assert wide.independent < narrow.independent / 10


def test_of_very_many_samples_only_so_many_are_claimed_to_be_independent() -> None:
    rng = random.Random(10)
    (p90, *_) = slow_end([[rng.random() for _ in range(50_000)] for _ in range(2)], Direction.LOWER)
    assert p90.samples == 100_000
    assert p90.independent <= 1 << 15
    assert p90.bound is not None
    assert p90.value < p90.bound < p90.value + 0.01

"""The interval of a median over launches: what holds always, and how often it covers."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.statistics.dependence import (
    correlation_chance,
    effective_beyond,
    effective_sample_size,
    interval_widening,
    midranks,
    neighbour_correlation,
    trend_chance,
    widening,
)
from benchwright.analysis.statistics.intervals import interval_of_median

numbers = st.floats(-1e9, 1e9, allow_nan=False)
launches = st.lists(numbers, min_size=6, max_size=60)


def slow_wandering(rng: random.Random, count: int, correlation: float) -> list[float]:
    values = [rng.gauss(0, 1)]
    while len(values) < count:
        values.append(correlation * values[-1] + math.sqrt(1 - correlation**2) * rng.gauss(0, 1))
    return values


@pytest.mark.parametrize("count", range(6))
def test_five_launches_or_fewer_give_no_interval(count: int) -> None:
    assert interval_of_median([float(n) for n in range(count)]) is None


def test_99_percent_need_eight_launches() -> None:
    assert interval_of_median([float(n) for n in range(7)], 0.99) is None
    assert interval_of_median([float(n) for n in range(8)], 0.99) is not None


def test_six_launches_lie_between_the_outer_two_pairs() -> None:
    # Between the exact 96.9 % of the extremes and the exact 78.1 % of the next ones, at Hettmansperger and Sheather's 5 / 14.
    interval = interval_of_median([3.0, 6.0, 2.0, 5.0, 1.0, 4.0])
    assert interval is not None
    assert (interval.low, interval.high) == (pytest.approx(1 + 5 / 14), pytest.approx(6 - 5 / 14))
    assert interval.widened == 1


@given(launches)
def test_the_median_lies_in_its_interval(values: list[float]) -> None:
    interval = interval_of_median(values)
    assert interval is not None
    slack = 1e-9 * max(abs(v) for v in values)
    assert interval.low - slack <= statistics.median(values) <= interval.high + slack


@given(launches, st.floats(1e-3, 1e3), st.floats(-1e6, 1e6))
def test_units_do_not_matter_nor_offsets_of_what_can_be_negative(
    values: list[float], scale: float, offset: float
) -> None:
    # Whole numbers, so that no two values become equal by rounding.
    values = [float(round(v)) for v in values]
    if min(values) >= 0 or offset + scale * min(values) >= 0:
        offset = 0.0
    plain = interval_of_median(values)
    moved = interval_of_median([offset + scale * v for v in values])
    assert plain is not None
    assert moved is not None
    slack = 1e-6 * (abs(offset) + scale * max(abs(v) for v in values) + 1)
    assert moved.widened == pytest.approx(plain.widened)
    assert moved.low == pytest.approx(offset + scale * plain.low, abs=slack)
    assert moved.high == pytest.approx(offset + scale * plain.high, rel=1e-6, abs=slack)


@given(st.lists(st.floats(0, 1e9), min_size=6, max_size=60))
def test_the_interval_of_what_is_never_negative_is_not_either(values: list[float]) -> None:
    interval = interval_of_median(values)
    assert interval is not None
    assert 0 <= interval.low <= interval.high


def test_a_slow_wandering_rate_has_the_interval_of_its_time() -> None:
    """On a straight scale the interval of the rate would begin at -6.6."""
    rates = [0.9, 1.4, 2.2, 3.1, 4.4, 6.0, 7.7, 9.5]
    of_rate, of_time = interval_of_median(rates), interval_of_median([1 / rate for rate in rates])
    assert of_rate is not None
    assert of_time is not None
    assert of_rate.widened == of_time.widened > 2
    assert of_rate.low > 0
    assert of_rate.low == pytest.approx(1 / of_time.high, rel=0.1)  # order statistics are interpolated on either scale
    assert of_rate.high == pytest.approx(1 / of_time.low, rel=0.1)


@pytest.mark.parametrize(("correlation", "spread"), [(0.0, 1.0), (0.6, 1.0), (0.8, 0.3), (0.9, 1.0)])
def test_a_log_scale_covers_as_often_as_a_straight_one(correlation: float, spread: float) -> None:
    """Lognormal launches of median 1, beside the same launches moved to where the straight scale is used."""
    rng = random.Random(29)
    covered = straight = negative = 0
    for _ in range(600):
        values = [math.exp(spread * z) for z in slow_wandering(rng, 12, correlation)]
        interval = interval_of_median(values)
        moved = interval_of_median([value - 1e3 for value in values])
        assert interval is not None
        assert moved is not None
        covered += interval.low <= 1 <= interval.high
        straight += moved.low <= 1 - 1e3 <= moved.high
        negative += interval.low < 0
    assert negative == 0
    assert abs(covered - straight) <= 12


@given(launches)
def test_less_confidence_is_never_wider(values: list[float]) -> None:
    wide, narrow = interval_of_median(values, 0.95), interval_of_median(values, 0.8)
    assert wide is not None
    assert narrow is not None
    slack = 1e-9 * max(abs(v) for v in values)
    assert wide.low <= narrow.low + slack
    assert narrow.high <= wide.high + slack


def test_the_interval_does_not_jump_where_the_exact_table_ends() -> None:
    rng = random.Random(5)
    values = [rng.gauss(100, 5) for _ in range(201)]
    widths = []
    for count in (200, 201):
        interval = interval_of_median(sorted(values[:count], key=lambda v: math.sin(v * 1e6)))
        assert interval is not None
        widths.append((interval.high - interval.low) / interval.widened)
    assert widths[1] == pytest.approx(widths[0], rel=0.15)


def test_many_thousand_launches_are_no_problem() -> None:
    rng = random.Random(6)
    interval = interval_of_median([rng.gauss(100, 5) for _ in range(20_000)])
    assert interval is not None
    assert 99.8 < interval.low < 100.1 < interval.high + 0.2


def test_huge_values_do_not_overflow() -> None:
    interval = interval_of_median([-1.7e308, 1.7e308] * 3, 0.9)
    assert interval is not None
    assert math.isfinite(interval.low)


@pytest.mark.parametrize("count", [6, 8, 12, 20])
@pytest.mark.parametrize("noise", ["gaussian", "exponential", "two speeds", "heavy tail"])
def test_95_percent_intervals_of_independent_launches_cover_95_percent(noise: str, count: int) -> None:
    rng = random.Random(f"{noise} {count}")
    draw, truth = {
        "gaussian": (lambda: rng.gauss(1, 0.02), 1.0),
        "exponential": (lambda: rng.expovariate(1), math.log(2)),
        "two speeds": (lambda: rng.gauss(1.1 if rng.random() < 0.3 else 1.0, 0.01), 1.00566),
        "heavy tail": (lambda: rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2 / 3)), 0.0),
    }[noise]
    hits = 0
    for _ in range(1500):
        interval = interval_of_median([draw() for _ in range(count)])
        assert interval is not None
        hits += interval.low <= truth <= interval.high
    # 93 to 97 % and 3 standard errors of the simulation (the full count is performance/coverage.py's).
    assert 0.915 <= hits / 1500 <= 0.985


@pytest.mark.parametrize(("correlation", "least"), [(0.6, 0.88), (0.8, 0.82)])
def test_launches_that_resemble_their_neighbours_are_widened_or_flagged(correlation: float, least: float) -> None:
    rng = random.Random(11)
    covered = silent = 0
    for _ in range(600):
        values = slow_wandering(rng, 20, correlation)
        interval = interval_of_median(values)
        assert interval is not None
        hit = interval.low <= 0 <= interval.high
        covered += hit
        warned = interval.widened > 1.05 or min(trend_chance(values), correlation_chance(values)) <= 0.02
        silent += not hit and not warned
    assert covered / 600 >= least
    assert silent / 600 <= 0.02


@pytest.mark.parametrize(("correlation", "least"), [(0.5, 0.87), (0.95, 0.60)])
def test_twelve_launches_with_clear_resemblance_are_widened_as_far_as_they_show_it(
    correlation: float, least: float
) -> None:
    rng = random.Random(12)
    series = [[100 + value for value in slow_wandering(rng, 12, correlation)] for _ in range(1500)]
    assert sum(i is not None and i.low <= 100 <= i.high for i in map(interval_of_median, series)) / 1500 >= least


@given(launches)
def test_widening_never_narrows(values: list[float]) -> None:
    assert 1 <= widening(values) <= interval_widening(values)


@given(launches)
def test_few_launches_are_widened_more_for_clear_resemblance_and_from_20_on_for_any(values: list[float]) -> None:
    if len(values) < 20:
        assert (interval_widening(values) > widening(values)) is (
            len(values) >= 8 and neighbour_correlation(values) > 0.3
        )
    else:
        assert (interval_widening(values) > 1) is (neighbour_correlation(values) > 0)


def test_a_staircase_resembles_and_a_saw_does_not() -> None:
    stairs = [float(n // 5) for n in range(20)]
    saw = [float(n % 2) for n in range(20)]
    assert neighbour_correlation(stairs) > 0.8
    assert neighbour_correlation(saw) < -0.8
    assert widening(stairs) > 2
    assert widening(saw) == 1
    assert correlation_chance(stairs) < 0.001
    assert trend_chance(stairs) < 0.001
    assert correlation_chance(saw) > 0.99


def test_equal_values_neither_resemble_nor_rise() -> None:
    assert (widening([5.0] * 12), trend_chance([5.0] * 12)) == (1.0, 1.0)
    assert midranks([2.0, 1.0, 2.0]) == [2.5, 1.0, 2.5]


@given(launches)
def test_the_trend_is_as_likely_seen_from_behind(values: list[float]) -> None:
    assert trend_chance(values) == trend_chance(values[::-1])


def test_independent_samples_count_fully_and_correlated_ones_less() -> None:
    rng = random.Random(3)
    independent = [rng.gauss(0, 1) for _ in range(2000)]
    correlated = slow_wandering(rng, 2000, 0.9)
    assert effective_sample_size(independent) > 1400
    # A median of AR(.9) is worth about 1 in 13.
    assert 60 < effective_sample_size(correlated) < 320
    assert effective_sample_size([1.0, 2.0, 3.0]) == 3


def test_what_is_beyond_a_limit_in_bursts_counts_for_less_than_what_is_scattered() -> None:
    rng = random.Random(4)
    noise = [rng.random() for _ in range(2000)]
    bursts = [v + (n % 200 < 10) for n, v in enumerate(noise)]
    scattered = sorted(bursts, key=lambda v: math.sin(v * 1e6))
    assert effective_beyond(scattered, 1.0) > 1400
    assert effective_beyond(bursts, 1.0) < 600
    assert effective_sample_size(bursts) > 1400  # the middle does not show it


@given(st.lists(numbers, max_size=80), numbers)
def test_no_series_is_worth_more_samples_than_it_has(values: list[float], limit: float) -> None:
    assert 0 <= effective_beyond(values, limit) <= len(values)

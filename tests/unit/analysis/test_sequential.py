"""The sequential test of an A/B: interval and p-value agree, and looks do not raise the error rate."""

from __future__ import annotations

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.statistics.distributions import student_limit
from benchwright.analysis.statistics.launch_noise import freedom, students
from benchwright.analysis.statistics.sequential import Looked, Pair, PairedTest, look_schedule
from benchwright.analysis.statistics.spending_function import levels_at

LOOKS = [look / 20 for look in look_schedule(20)]
NOISE = st.floats(-0.2, 0.2)
PAIRS = st.lists(st.builds(Pair, NOISE, NOISE, st.booleans()), min_size=6, max_size=30)


def pairs_of(noise: list[float], effect: float = 0.0, seed: int = 1) -> list[Pair]:
    """From launches in the order they ran, two for each pair."""
    chance = random.Random(seed)
    made = []
    for first, second in zip(noise[::2], noise[1::2], strict=True):
        control_first = chance.random() < 0.5
        control, treatment = (first, second) if control_first else (second, first)
        made.append(Pair(control, treatment + effect, control_first))
    return made


def test_looks_come_sooner_at_first() -> None:
    assert look_schedule(20) == (8, 10, 13, 16, 20)
    assert look_schedule(40) == (8, 10, 13, 16, 20, 25, 31, 39, 40)
    assert look_schedule(6) == (6,)


@given(PAIRS, st.floats(1e-6, 0.3), st.floats(-0.1, 0.1))
def test_the_interval_excludes_no_difference_exactly_if_the_p_value_is_small(
    pairs: list[Pair], level: float, effect: float
) -> None:
    shifted = [p._replace(treatment=p.treatment + effect) for p in pairs]
    looked = Looked(PairedTest(shifted), levels_at(LOOKS[:3]))
    low, high = looked.bounds(level)
    excluded = not low <= 0 <= high
    nominal = looked.levels.nominal_of(level)
    if abs(looked.test.chance(0.0) / nominal - 1) > 1e-9:  # not on the edge itself
        assert excluded is (looked.p_value <= level)


@given(PAIRS)
def test_swapping_the_sides_inverts_the_ratio(pairs: list[Pair]) -> None:
    swapped = [Pair(p.treatment, p.control, not p.control_first) for p in pairs]
    ours, theirs = PairedTest(pairs), PairedTest(swapped)
    assert ours.chance(0.0) == pytest.approx(theirs.chance(0.0), rel=1e-6, abs=1e-12)
    (low, high), other = ours.bounds(0.01), theirs.bounds(0.01)
    assert low <= ours.estimate <= high
    assert (low, high) == (pytest.approx(-other[1], abs=1e-6), pytest.approx(-other[0], abs=1e-6))


def test_a_slow_drift_of_the_machine_is_taken_off() -> None:
    widths = []
    for seed in range(12):
        chance, level, noise = random.Random(seed), 0.0, []
        for _ in range(40):
            level += chance.gauss(0, 0.01)
            noise.append(level)
        pairs = pairs_of(noise, effect=0.005, seed=seed)
        low, high = PairedTest(pairs).bounds(0.01)
        assert low < 0.005 < high
        plain = statistics.stdev(p.treatment - p.control for p in pairs)
        widths.append((high - low) / (2 * 2.861 * plain / math.sqrt(20)))  # the t-interval of the plain differences
    assert statistics.fmean(widths) < 0.95


def test_a_spike_does_not_hide_a_difference() -> None:
    chance = random.Random(3)
    noise = [chance.gauss(0, 0.01) for _ in range(40)]
    noise[8] += 1.1
    assert PairedTest(pairs_of(noise, effect=0.05)).chance(0.0) < 0.01


def test_false_alarms_are_as_rare_as_said_in_noise_of_any_kind() -> None:
    chance, count = np.random.default_rng(5), 4000
    fresh = chance.standard_normal((count, 40))
    wandering, walk = fresh.copy(), np.cumsum(fresh, axis=1)
    for launch in range(1, 40):
        wandering[:, launch] += 0.6 * wandering[:, launch - 1]
    two_speeds = fresh + np.where(chance.random((count, 40)) < 0.3, 10, 0)
    stepped = fresh + np.where(np.arange(40) >= chance.integers(10, 30, (count, 1)), 5, 0)
    control_first = chance.random((count, 20)) < 0.5
    is_treatment = np.stack([~control_first, control_first], axis=2).reshape(count, 40)
    for noise in (fresh, wandering, walk, two_speeds, stepped, chance.standard_t(2, (count, 40))):
        assert np.mean(np.abs(students(noise, is_treatment)) > student_limit(0.01, freedom(40))) < 0.016
        found = np.mean(np.abs(students(noise + 20 * is_treatment, is_treatment)) > student_limit(0.01, freedom(40)))
        assert found > 0.99


@pytest.mark.parametrize("times", [5, 10])
def test_a_side_that_is_much_noisier_raises_no_false_alarms(times: float) -> None:
    rng = np.random.default_rng(3)
    count, pairs = 3000, 40
    is_treatment = np.tile([False, True, True, False, False, True, False, True], pairs // 4)
    noise = rng.standard_normal((count, 2 * pairs)) * np.where(is_treatment, 0.01 * times, 0.01)
    limit = student_limit(0.01, freedom(2 * pairs))
    assert (
        np.mean(np.abs(students(noise, is_treatment)) >= limit) <= 0.018
    )  # once 4 to 6 %; of 1.2 %, more has a chance of 0.2 %


def test_launches_that_do_not_depend_on_each_other_all_tell_how_large_the_noise_is() -> None:
    """Eight differences within pairs have 7 degrees of freedom; sixteen launches have 12."""
    chance, widths = random.Random(4), []
    for seed in range(30):
        pairs = pairs_of([chance.gauss(0, 0.01) for _ in range(16)], seed=seed)
        low, high = PairedTest(pairs).bounds(0.001)
        widths.append((high - low) / (2 * 5.408 * math.sqrt(2 / 8) * 0.01))  # Student's t, 7 degrees of freedom
    assert statistics.median(widths) < 0.9


def test_values_that_are_mostly_the_same_get_no_false_certainty() -> None:
    sizes = [Pair(1.0, 1.0, i % 3 == 0) for i in range(18)]
    odd = [*sizes, Pair(1.0, 1.001, True), Pair(1.0, 1.002, False)]
    low, high = PairedTest(odd).bounds(0.01)
    assert low < 0 < high < 0.002
    assert PairedTest(odd).chance(0.0) > 0.05


def test_five_pairs_are_too_few() -> None:
    with pytest.raises(ValueError, match="5 pairs are too few"):
        PairedTest([Pair(0.0, 0.1, True)] * 5)


def test_values_without_noise_are_decided_at_once() -> None:
    same, other = [Pair(1.0, 1.0, True)] * 8, [Pair(1.0, 1.5, True)] * 8
    assert PairedTest(same).chance(0.0) == 1.0
    assert PairedTest(same).bounds(0.001) == (pytest.approx(0.0, abs=1e-9),) * 2
    assert PairedTest(other).chance(0.0) == 0.0
    assert PairedTest(other).bounds(0.001) == (pytest.approx(0.5), pytest.approx(0.5))


def test_no_number_of_looks_spends_more_than_the_error_rate() -> None:
    """A Brownian motion, looked at as an A/B is."""
    chance, rate, crossed = random.Random(11), 0.1, 0
    bounds = [
        statistics.NormalDist().inv_cdf(1 - levels_at(LOOKS[: n + 1]).nominal_of(rate) / 2) for n in range(len(LOOKS))
    ]
    for _ in range(4000):
        place = before = 0.0
        for look, bound in zip(LOOKS, bounds, strict=True):
            place += chance.gauss(0, math.sqrt(look - before))
            before = look
            if abs(place) > bound * math.sqrt(look):
                crossed += 1
                break
    assert 0.048 < crossed / 4000 < 0.072  # 0.06: the rest is kept in reserve


def test_one_look_costs_next_to_nothing_and_more_cost_more() -> None:
    single = levels_at([1.0])
    assert single.nominal_of(0.01) == pytest.approx(0.0069, rel=1e-3)
    assert single.overall_of(single.nominal_of(0.01)) == pytest.approx(0.01)
    assert levels_at(LOOKS).nominal_of(0.01) < single.nominal_of(0.01)
    assert levels_at(LOOKS[:1]).nominal_of(0.01) == pytest.approx(0.0060 * 0.4**4, rel=1e-3)


def test_looks_at_the_same_data_are_one() -> None:
    assert levels_at([0.5, 0.501, 0.502]) == levels_at([0.502])
    assert levels_at([0.4, 1.0, 1.2]) == levels_at([0.4, 1.0])


@given(st.lists(st.floats(0.0, 1.5), min_size=1, max_size=8), st.floats(1e-14, 1))
def test_levels_are_between_none_and_all_and_can_be_inverted(shares: list[float], rate: float) -> None:
    levels = levels_at(sorted(shares))
    nominal = levels.nominal_of(rate)
    assert 0 < nominal <= rate * (1 + 1e-9)
    assert levels.overall_of(nominal) == pytest.approx(rate, rel=1e-6)

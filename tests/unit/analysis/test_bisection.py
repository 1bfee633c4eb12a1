"""Bisection: the commit that changed the metric is found, in few launches, and nobody is convicted by noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.analysis.bisection import Bisection


def bisect(
    bisection: Bisection, changed: int | None, *, spread: float, step: float, seed: int, most: int = 300
) -> Bisection:
    rng = np.random.default_rng(seed)
    while bisection.launches < most and (place := bisection.next_place()) is not None:
        level = 1 + step * (changed is not None and place >= changed)
        bisection.observe(place, level * (1 + spread * rng.standard_normal()))
    return bisection


@pytest.mark.parametrize("changed", [1, 2, 17, 40, 62, 63])
def test_the_commit_that_changed_the_metric_is_found(changed: int) -> None:
    found = bisect(Bisection(64), changed, spread=0.01, step=0.05, seed=changed)
    assert (found.best, found.next_place()) == (changed, None)
    assert found.chance >= 0.97
    assert found.launches <= 40


@pytest.mark.parametrize("step", [0.3, -0.3])
def test_measurements_without_noise_need_few_launches(step: float) -> None:
    found = bisect(Bisection(1000), 613, spread=0.0, step=step, seed=0)
    assert found.best == 613
    assert found.launches <= 20  # 10 questions, 6 for the ends


def test_one_outlier_does_not_lead_astray() -> None:
    bisection = Bisection(16)
    for place in (0, 0, 0, 0):
        bisection.observe(place, 1.0 + place)
    for value in (1.10, 1.11, 1.09, 1.1):
        bisection.observe(15, value)
    for value in (1.0, 1.01, 3.0, 0.99):  # 3.0: another program ran beside it
        bisection.observe(8, value)
    assert sum(bisection.posterior()[9:]) > 0.95


def test_noise_alone_convicts_nobody() -> None:
    for seed in range(5):
        found = bisect(Bisection(32), None, spread=0.02, step=0.0, seed=seed, most=60)
        assert found.chance < 0.97


def test_the_chances_and_that_nothing_changed_add_up_to_one() -> None:
    found = bisect(Bisection(20), 7, spread=0.02, step=0.03, seed=1, most=15)
    assert math.isclose(sum(found.posterior()) + found.unchanged, 1)
    assert len(found.posterior()) == 20
    assert found.posterior()[0] == 0


def test_a_skipped_commit_is_not_measured_and_stays_a_suspect_with_its_successor() -> None:
    bisection = Bisection(16)
    for unbuildable in (6, 7, 8):
        bisection.skip(unbuildable)
    rng = np.random.default_rng(3)
    while (place := bisection.next_place()) is not None:
        assert place not in (6, 7, 8)
        bisection.observe(place, 1 + 0.2 * (place >= 7) + 0.01 * rng.standard_normal())
    assert bisection.suspects == range(6, 10)
    assert sum(bisection.posterior()[6:10]) >= 0.97


def test_with_every_commit_between_skipped_there_is_nothing_to_ask() -> None:
    bisection = Bisection(4)
    bisection.skip(1)
    bisection.skip(2)
    for _ in range(3):
        bisection.observe(0, 1.0)
        bisection.observe(3, 1.2)
    assert bisection.next_place() is None
    assert bisection.suspects == range(1, 4)


def test_the_ends_are_measured_first_and_in_turns() -> None:
    bisection = Bisection(8)
    asked = []
    for _ in range(6):
        place = bisection.next_place()
        assert place is not None
        asked.append(place)
        bisection.observe(place, 1.0 + 0.1 * (place > 3) + 0.001 * len(asked))
    assert asked == [0, 7, 0, 7, 0, 7]


def test_a_prior_that_suspects_one_commit_saves_launches() -> None:
    weights = [1.0] * 64
    weights[20] = 200.0
    told = bisect(Bisection(64, weights), 20, spread=0.02, step=0.05, seed=4)
    untold = bisect(Bisection(64), 20, spread=0.02, step=0.05, seed=4)
    assert told.best == untold.best == 20
    assert told.launches < untold.launches


def test_a_known_direction_excludes_changes_to_the_other_side() -> None:
    free, up = Bisection(8, enough=0.999), Bisection(8, enough=0.999, rises=True)
    for bisection in (free, up):
        for place, value in ((0, 1.00), (0, 1.01), (4, 0.95), (4, 0.96), (7, 1.02), (7, 1.03)):
            bisection.observe(place, value)
    assert sum(up.posterior()[5:]) > sum(free.posterior()[5:])


def direct_posterior(observed: dict[int, list[float]], count: int) -> list[float]:
    """The same by brute force, for Gaussian noise: a plain sum over means and standard deviations."""
    means = np.linspace(0.8, 1.3, 101)
    spreads = np.geomspace(0.004, 0.2, 30)
    evidence = []
    for change in range(1, count):
        before = [v for place, values in observed.items() if place < change for v in values]
        after = [v for place, values in observed.items() if place >= change for v in values]
        total = 0.0
        for spread in spreads:
            sides = [
                sum(math.exp(sum(-(((v - m) / spread) ** 2) / 2 - math.log(spread) for v in side)) for m in means)
                for side in (before, after)
            ]
            total += sides[0] * sides[1]
        evidence.append(total)
    return [0.0, *(e / sum(evidence) for e in evidence)]


def test_the_posterior_agrees_with_a_sum_over_all_hypotheses() -> None:
    rng = np.random.default_rng(11)
    observed = {p: [float(1 + 0.05 * (p >= 3) + 0.03 * rng.standard_normal()) for _ in range(4)] for p in (0, 2, 4, 6)}
    bisection = Bisection(7, unchanged_prior=1e-9)
    for place, values in observed.items():
        for value in values:
            bisection.observe(place, value)
    assert bisection.posterior() == pytest.approx(direct_posterior(observed, 7), abs=0.06)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-6, 1e6), st.integers(1, 14))
def test_the_unit_of_the_metric_does_not_matter(seed: int, unit: float, changed: int) -> None:
    rng = np.random.default_rng(seed)
    plain, scaled = Bisection(16), Bisection(16)
    for place in (0, 15, 0, 15, 0, 15, 8, 4, 12, 8):
        value = 1 + 0.1 * (place >= changed) + 0.03 * rng.standard_normal()
        plain.observe(place, value)
        scaled.observe(place, value * unit)
    assert scaled.posterior() == pytest.approx(plain.posterior(), abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 15))
def test_read_from_the_other_end_it_is_the_same_commit(seed: int, changed: int) -> None:
    rng = np.random.default_rng(seed)
    forth, back = Bisection(16), Bisection(16)
    for place in (0, 15, 0, 15, 0, 15, 8, 4, 12, 8):
        value = 1 + 0.1 * (place >= changed) + 0.03 * rng.standard_normal()
        forth.observe(place, value)
        back.observe(15 - place, value)
    assert back.posterior()[1:] == pytest.approx(forth.posterior()[:0:-1], abs=1e-6)


def test_what_cannot_be_is_refused() -> None:
    bisection = Bisection(8)
    with pytest.raises(ValueError, match="no commit 9 of 8"):
        bisection.observe(9, 1.0)
    with pytest.raises(ValueError, match="commit 0 measured nan"):
        bisection.observe(0, math.nan)
    for end in (0, 7):
        with pytest.raises(ValueError, match="cannot be skipped"):
            bisection.skip(end)


@pytest.mark.parametrize("prior", [[1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 2.0]])
def test_a_prior_that_suspects_nobody_is_refused(prior: list[float]) -> None:
    with pytest.raises(ValueError, match="one weight for each commit"):
        Bisection(3, prior)

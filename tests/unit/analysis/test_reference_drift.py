"""What the reference's launches show of a machine's drift is taken out; what commits differ by is not."""

from __future__ import annotations

import random
import statistics

from benchwright.analysis.reference_drift import without_drift

PLACES = [0, 5, 7] * 20  # the reference, an unchanged commit, and a slower one
TRUE = {0: 0.0, 5: 0.0, 7: 0.05}


def measured(drift: list[float], noise: float, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [TRUE[place] + drift[time] + rng.gauss(0, noise) for time, place in enumerate(PLACES)]


def level(values: list[float], place: int, part: slice) -> float:
    return statistics.fmean([v for v, p in zip(values, PLACES, strict=True) if p == place][part])


EARLY, LATE = slice(0, 10), slice(10, 20)


def test_a_machine_that_became_slower_no_longer_shows() -> None:
    drift = [0.0] * 30 + [0.08] * 30
    raw = measured(drift, 0.005)
    found = without_drift(PLACES, raw)
    assert level(raw, 5, LATE) - level(raw, 5, EARLY) > 0.07
    assert abs(level(found, 5, LATE) - level(found, 5, EARLY)) < 0.02


def test_the_difference_between_commits_stays() -> None:
    found = without_drift(PLACES, measured([0.001 * time for time in range(60)], 0.005))
    whole = slice(0, 20)
    assert abs(level(found, 7, whole) - level(found, 5, whole) - 0.05) < 0.01


def test_on_a_steady_machine_little_is_changed() -> None:
    raw = [measured([0.0] * 60, 0.03, seed) for seed in range(20)]
    moved = [statistics.pstdev([a - b for a, b in zip(without_drift(PLACES, v), v, strict=True)]) for v in raw]
    assert statistics.fmean(moved) < 0.01  # the reference itself would add 0.017


def test_few_launches_of_the_reference_say_nothing_about_drift() -> None:
    assert without_drift([0, 1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0, 5.0]) == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_values_without_noise_stay_as_they_are() -> None:
    assert without_drift(PLACES, [TRUE[place] for place in PLACES]) == [TRUE[place] for place in PLACES]

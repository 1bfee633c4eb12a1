"""Whether launches were stable: detects a step, a trend or serial correlation, whichever explains most.

Each test has a false-alarm rate of 2 % or less on independent launches.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.dependence import correlation_chance, trend_chance
from benchwright.analysis.statistics.distributions import student_two_sided

ALARM = 0.018  # a little below 2 %, so that simulated rates stay below it too
LEAST_CHANGE = 0.005  # smaller changes may be real, but do not matter


class Drift(NamedTuple):
    """`kind`: step, trend or correlated. `change`: as a fraction; `place`: the number of launches before a step."""

    kind: str
    change: float
    place: int = 0


def drift_of(values: Sequence[float]) -> Drift | None:
    """None if the launches look independent."""
    trends = trend_chance(values) <= ALARM and abs(change(values)) >= LEAST_CHANGE
    step = level_change(values)
    steps = step is not None and step.chance <= ALARM and abs(step.change) >= LEAST_CHANGE
    if step is not None and steps and (not trends or explains_more_than_a_trend(values, step.place)):
        return Drift("step", step.change, step.place)
    if trends:
        return Drift("trend", change(values))
    if correlation_chance(values) <= ALARM:
        return Drift("correlated", max(values) / min(values) - 1 if min(values) > 0 else 0.0)
    return None


def change(values: Sequence[float]) -> float:
    """The change from the median of the first third to that of the last, as a fraction."""
    third = max(1, len(values) // 3)
    start, end = statistics.median(values[:third]), statistics.median(values[-third:])
    return end / start - 1 if start else 0.0


LEAST_LAUNCHES = 3  # on each side of the change: two similar ones are too likely by chance
ROUNDING = 1e-12  # a smaller spread, of values of at most 1, comes from rounding
FAR = 5.0  # robust standard deviations; values further out are clipped, so that no spike makes a level


class LevelChange(NamedTuple):
    """`place`: the number of values before it. `change`: as a fraction. `chance`: the p-value."""

    place: int
    change: float
    chance: float


def level_change(values: Sequence[float]) -> LevelChange | None:
    """The clearest one, however likely by chance; None for fewer than 6 values, or constant ones."""
    n = len(values)
    places = range(LEAST_LAUNCHES, n - LEAST_LAUNCHES + 1)
    if not places:
        return None
    near = _without_spikes(values)
    place, t = max(((place, _student(near, place)) for place in places), key=lambda found: abs(found[1]))
    before, after = statistics.median(near[:place]), statistics.median(near[place:])
    if t == 0 or not before:
        return None
    return LevelChange(place, after / before - 1, min(1.0, len(places) * student_two_sided(t, n - 2)))


def explains_more_than_a_trend(values: Sequence[float], place: int) -> bool:
    """Whether two levels fit better than a straight line."""
    near = _without_spikes(values)
    middle = (len(near) - 1) / 2
    mean = statistics.fmean(near)
    steep = sum((i - middle) * (v - mean) for i, v in enumerate(near)) / sum(
        (i - middle) ** 2 for i in range(len(near))
    )
    line = math.fsum((v - mean - steep * (i - middle)) ** 2 for i, v in enumerate(near))
    return _squares(near[:place]) + _squares(near[place:]) < line


def _student(values: Sequence[float], place: int) -> float:
    before, after = values[:place], values[place:]
    spread = (_squares(before) + _squares(after)) / (len(values) - 2) * (1 / len(before) + 1 / len(after))
    step = statistics.fmean(after) - statistics.fmean(before)
    return step / math.sqrt(spread) if spread > 0 else math.copysign(math.inf, step) if step else 0.0


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return math.fsum((v - mean) ** 2 for v in values)


def _without_spikes(values: Sequence[float]) -> list[float]:
    """Clipped, and in units of the largest, so that the square of a huge value does not overflow."""
    largest = max(map(abs, values)) or 1.0
    small = [v / largest for v in values]
    median = statistics.median(small)
    reach = FAR * 1.4826 * statistics.median(abs(v - median) for v in small)
    return [min(max(v, median - reach), median + reach) for v in small] if reach > ROUNDING else small

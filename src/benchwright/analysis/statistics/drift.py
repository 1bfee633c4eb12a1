"""Did launches hold still? A step, a trend or resemblance of neighbours: whichever tells most.

Each test calls independent launches remarkable in 2 % of cases or fewer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.dependence import resemblance_chance, trend_chance
from benchwright.analysis.statistics.distributions import student_two_sided

ALARM = 0.018  # a little below 2 %, so that what is counted in a simulation stays below it too
LEAST_CHANGE = 0.005  # what is smaller is real perhaps, but nobody's concern


class Drift(NamedTuple):
    """`kind`: step, trend or correlated. `change`: by what fraction; `place`: how many launches lie before a step."""

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
    if resemblance_chance(values) <= ALARM:
        return Drift("correlated", max(values) / min(values) - 1 if min(values) > 0 else 0.0)
    return None


def change(values: Sequence[float]) -> float:
    """By what fraction the last third differs from the first third, by their medians."""
    third = max(1, len(values) // 3)
    start, end = statistics.median(values[:third]), statistics.median(values[-third:])
    return end / start - 1 if start else 0.0


LEAST_LAUNCHES = 3  # on each side of the change: two that are alike come about too easily
_ROUNDING = 1e-12  # a spread below this, of values of at most 1, is one of rounding
_FAR = 5.0  # robust standard deviations; a value further out is moved there, so that no spike makes a level


class LevelChange(NamedTuple):
    """`place`: how many values lie before it. `change`: by what fraction. `chance`: how likely independent values show it."""

    place: int
    change: float
    chance: float


def level_change(values: Sequence[float]) -> LevelChange | None:
    """The clearest one, however likely by chance; None of fewer than 6 values, or of values that never change."""
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
    """Whether two levels leave less of the spread unexplained than a straight line does."""
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
    """In units of the largest, so that no square of a huge value overflows."""
    largest = max(map(abs, values)) or 1.0
    small = [v / largest for v in values]
    median = statistics.median(small)
    reach = _FAR * 1.4826 * statistics.median(abs(v - median) for v in small)
    return [min(max(v, median - reach), median + reach) for v in small] if reach > _ROUNDING else small

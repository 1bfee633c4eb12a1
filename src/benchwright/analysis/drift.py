"""Did launches hold still? A step, a trend or resemblance of neighbours: whichever tells most.

Each test calls independent launches remarkable in 2 % of cases or fewer.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.analysis.dependence import resemblance_chance, trend_chance
from benchwright.analysis.level_change import explains_more_than_a_trend, level_change

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

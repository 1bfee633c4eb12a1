"""The test of an A/B: the ratio within pairs of launches, its interval and its p-value, valid at every look.

A pair is a launch of each side, one after the other, in random and balanced order. To test a ratio, the treatment's times are
divided by it; what is left is noise, and which side came first in a pair is chance. From 12 pairs on, each difference is made smaller by
what its neighbours predict (if the machine gets slower from the launch before the pair to the one after it, a third of that is
expected within it), and outliers are limited, before Student's t judges. The prediction uses the noise alone, not which side
came first, so it cannot favour one. The interval holds the ratios that are not rejected: it and the p-value cannot disagree.
Why this test: docs/decisions/0034-verdicts.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.distributions import student_two_sided
from benchwright.analysis.statistics.spending import Levels

_FEWEST_TO_ADJUST = 12  # with fewer, the prediction is fitted to too little
_MOST_PREDICTED = 1 / 3  # of the change from before the pair to after it: three steps, one of them within
_NOT_TRUSTED = 0.1  # of the slope with 18 neighbours: taken off, since noise has a slope too
_FAR = 2.0  # robust standard deviations, beyond which a difference is limited
_FAR_NEIGHBOUR = 2.5
_TO_DEVIATION = 1.4826  # from the median of distances
_HALVINGS = 50
_ENDLESS = 100.0  # as a logarithm of a ratio
_FIRST_LOOK, _LATER = 8, 1.25  # pairs; each look after a quarter more


class Pair(NamedTuple):
    """One value of each side, as logarithms."""

    control: float
    treatment: float
    control_first: bool


class LogInterval(NamedTuple):
    """As logarithms of the ratio."""

    low: float
    high: float


def look_schedule(most: int) -> tuple[int, ...]:
    """After how many pairs to look, up to `most`."""
    looks, next_look = [], _FIRST_LOOK
    while next_look < most:
        looks.append(next_look)
        next_look = max(next_look + 2, int(next_look * _LATER + 0.5))
    return (*looks, most)


class PairedTest:
    """Pairs in the order they ran; at least two."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs
        self._ratios = [p.treatment - p.control for p in pairs]
        self.estimate = self._estimated()

    def chance(self, log_ratio: float) -> float:
        """The two-sided p-value of this ratio, by itself."""
        return student_two_sided(self._student(log_ratio), len(self._pairs) - 1)

    def bounds(self, level: float) -> LogInterval:
        """The ratios whose p-value is above `level`; 1 is among them exactly if its own is."""
        return LogInterval(self._end(level, -1), self._end(level, 1))

    def _estimated(self) -> float:
        """The ratio that no difference remains for."""
        low, high = min(self._ratios), max(self._ratios)
        if low == high:
            return low
        return _crossing(lambda ratio: self._student(ratio) > 0, low, high)

    def _end(self, level: float, direction: int) -> float:
        def is_inside(ratio: float) -> bool:
            return self.chance(ratio) > level

        inside, reach = self.estimate, max(1e-9, statistics.stdev(self._ratios))
        if self.estimate * direction < 0:  # no difference lies on this side
            if not is_inside(0.0):
                return _crossing(is_inside, inside, 0.0)
            inside = 0.0
        while is_inside(outside := inside + direction * reach):
            reach *= 2
            if reach > _ENDLESS:
                return direction * math.inf
        return _crossing(is_inside, inside, outside)

    def _student(self, log_ratio: float) -> float:
        values = self._differences(log_ratio)
        mean, spread = statistics.fmean(values), statistics.stdev(values)
        if spread <= 1e-15 * max(1.0, abs(log_ratio)):
            return 0.0 if abs(mean) <= 1e-12 else math.copysign(math.inf, mean)
        return mean / (spread / math.sqrt(len(values)))

    def _differences(self, log_ratio: float) -> list[float]:
        """Treatment minus control, if the true difference is `log_ratio`."""
        if len(self._pairs) < _FEWEST_TO_ADJUST:
            return [ratio - log_ratio for ratio in self._ratios]
        ran = [
            (p.control, p.treatment - log_ratio) if p.control_first else (p.treatment - log_ratio, p.control)
            for p in self._pairs
        ]
        steps = _without_prediction(ran)
        return _limited([s if p.control_first else -s for s, p in zip(steps, self._pairs, strict=True)], _FAR)


class Looked(NamedTuple):
    """A test at its last look. All that it says counts the looks before."""

    test: PairedTest
    levels: Levels

    @property
    def p_value(self) -> float:
        """Of no difference."""
        return self.levels.overall_of(self.test.chance(0.0))

    def bounds(self, level: float) -> LogInterval:
        """0 is inside exactly if `p_value` is above `level`."""
        return self.test.bounds(self.levels.nominal_of(level))


def _without_prediction(ran: Sequence[tuple[float, float]]) -> list[float]:
    """Second minus first of each pair, less what the launches around it predict."""
    steps = [second - first for first, second in ran]
    around = _limited([after[0] - before[1] for before, after in zip(ran, ran[2:], strict=False)], _FAR_NEIGHBOUR)
    squares = math.fsum(a * a for a in around)
    if squares == 0:
        return steps
    slope = math.fsum(a * s for a, s in zip(around, _limited(steps[1:-1], _FAR_NEIGHBOUR), strict=True)) / squares
    slope = min(_MOST_PREDICTED, max(0.0, slope - _NOT_TRUSTED * math.sqrt(18 / len(around))))
    return [steps[0], *(s - slope * a for s, a in zip(steps[1:-1], around, strict=True)), steps[-1]]


def _limited(values: Sequence[float], far: float) -> list[float]:
    """Values further from 0 than `far` robust standard deviations count as that far. If most are 0, all stay as they are."""
    reach = far * _TO_DEVIATION * statistics.median(map(abs, values))
    return [max(-reach, min(reach, v)) for v in values] if reach > 0 else list(values)


def _crossing(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last value that `holds` is true for, on the way from one that it is true for to one that it is not."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return inside

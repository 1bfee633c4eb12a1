"""The test of an A/B: the ratio of launches in pairs, its interval and its p-value, valid at every look.

A pair is a launch of each side, one after the other, in random and balanced order. To test a ratio, the treatment's times are
divided by it; what is left is noise, and which side came first in a pair is chance. Whether the sides still differ is judged by Student's
t in that noise (`launch_noise`). The interval holds the ratios that are not rejected: it and the p-value cannot disagree.
Why this test: docs/decisions/0034-verdicts.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.distributions import student_limit, student_two_sided
from benchwright.analysis.statistics.launch_noise import freedom, students
from benchwright.analysis.statistics.spending_function import Levels

_FEWEST_PAIRS = 6  # with fewer there are too few degrees of freedom
_ENDLESS = 100.0  # as a logarithm of a ratio
_PARTS, _ROUNDS = 32, 7  # to find an end: the part it is in, of so many, so often
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
    """Pairs in the order they ran; at least six."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        import numpy as np  # here: most commands compare nothing, and start sooner without it

        if len(pairs) < _FEWEST_PAIRS:
            raise ValueError(f"{len(pairs)} pairs are too few to test")
        is_treatment = np.array([side is p.control_first for p in pairs for side in (False, True)])
        launches = np.array([v for p in pairs for v in (p[:2] if p.control_first else p[1::-1])])

        def students_of(log_ratios: Sequence[float]) -> list[float]:
            without = launches - np.multiply.outer(log_ratios, is_treatment)
            found: list[float] = students(without, is_treatment).tolist()
            return found

        ratios = [p.treatment - p.control for p in pairs]
        self._students = students_of
        self._reach = max(1e-9, statistics.stdev(ratios))
        self._freedom = freedom(len(launches))
        self.estimate = self._estimated(statistics.median(ratios))

    def chance(self, log_ratio: float) -> float:
        """The two-sided p-value of this ratio, by itself."""
        return student_two_sided(self._students([log_ratio])[0], self._freedom)

    def bounds(self, level: float) -> LogInterval:
        """The ratios whose p-value is above `level`; 1 is among them exactly if its own is."""
        return LogInterval(self._end(level, -1), self._end(level, 1))

    def _estimated(self, near: float) -> float:
        """The ratio that no difference remains for."""
        left = self._students([near])[0]
        return near if left == 0 else self._last(lambda student: student * left > 0, near, self._reaching(near, left))

    def _end(self, level: float, direction: int) -> float:
        limit = student_limit(level, self._freedom)

        def is_inside(student: float) -> bool:
            return abs(student) < limit

        if self.estimate * direction >= 0:
            return self._last(is_inside, self.estimate, self._reaching(self.estimate, direction))
        if self.chance(0.0) <= level:  # no difference lies on this side
            return self._last(is_inside, self.estimate, [0.0])
        return self._last(is_inside, 0.0, self._reaching(0.0, direction))

    def _reaching(self, start: float, direction: float) -> list[float]:
        """Ratios further and further away."""
        doublings = range(2 + math.ceil(math.log2(_ENDLESS / self._reach)))
        return [start + math.copysign(self._reach * 2.0**doubling, direction) for doubling in doublings]

    def _last(self, holds: Callable[[float], bool], inside: float, further: Sequence[float]) -> float:
        """The last ratio that `holds` is true for, from `inside`, one that it is true for, to the first of `further` that it is not."""
        for _ in range(_ROUNDS):
            beyond = [n for n, student in enumerate(self._students(further)) if not holds(student)]
            if not beyond:
                return math.copysign(math.inf, further[-1] - inside)
            outside = further[beyond[0]]
            inside = further[beyond[0] - 1] if beyond[0] else inside
            further = [inside + (outside - inside) * part / _PARTS for part in range(1, _PARTS)] + [outside]
        return inside


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

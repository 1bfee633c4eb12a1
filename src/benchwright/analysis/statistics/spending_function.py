"""How much of the error rate each look at an A/B may spend, so that all looks together spend no more than allowed.

Lan and DeMets' spending functions: by the time a share t of the pairs (or of the budget) is used, α·t⁴ is spent. The levels of
the looks follow from the joint distribution of a Brownian motion at those times, by Armitage, McPherson and Rowe's
recursion. Looks need not be planned; only what was used when they happened must not depend on what they showed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

# The recursion holds for many launches and known noise. With 16 to 40 launches, Student's t of successive looks is a little less
# correlated, and noise that is not Gaussian or changes its level makes it a little larger, so part of the error rate is kept in reserve,
# less if the only look is at the end: simulated rates then stay below it (performance/verdicts.py).
_RESERVE, _RESERVE_OF_ONE_LOOK = 0.40, 0.31
_POWER = 4  # a compromise: 3 stops sooner, 5 finds a little more at the last look
_SAME_LOOK = 0.01  # looks closer than this share of all pairs are one
_RATES = tuple(10 ** (tenth / 2) for tenth in range(-24, 0))  # overall rates whose levels are tabulated
_STEPS_OF_DEVIATION = 2  # grid points
_FEWEST_POINTS, _MOST_POINTS = 24, 400


class Levels(NamedTuple):
    """Overall error rates, and the level at the last look that belongs to each; both ascending, as logarithms."""

    overall: tuple[float, ...]
    nominal: tuple[float, ...]

    def nominal_of(self, overall: float) -> float:
        """The largest significant p-value of the last look alone."""
        return _interpolated(overall, self.overall, self.nominal)

    def overall_of(self, nominal: float) -> float:
        """The p-value that counts all looks, from that of the last look alone."""
        return _interpolated(nominal, self.nominal, self.overall)


def levels_at(shares: Sequence[float]) -> Levels:
    """`shares`: how much of the pairs or of the budget was used at each look, ascending, the last look last."""
    looks: list[float] = []
    for share in shares:
        here = round(min(1.0, share), 3)
        while looks and here - looks[-1] < _SAME_LOOK:
            looks.pop()
        looks.append(max(here, _SAME_LOOK))
    return _levels(tuple(looks))


@lru_cache(maxsize=256)
def _levels(looks: tuple[float, ...]) -> Levels:
    nominal = [_last_level(looks, rate) for rate in _RATES]
    return Levels((*map(math.log, _RATES), 0.0), (*map(math.log, nominal), 0.0))


def _last_level(looks: tuple[float, ...], rate: float) -> float:
    """The two-sided level of the last look."""
    spendable = rate * (1 - (_RESERVE_OF_ONE_LOOK if looks == (1.0,) else _RESERVE))
    spent, used, bound = 0.0, 0.0, math.inf
    walk = [(0.0, 1.0)]  # where the motion is if no look has stopped it: points and their weights
    for number, look in enumerate(looks):
        allowed = spendable * look**_POWER
        deviation = math.sqrt(look - used)
        bound = _bound(walk, deviation, allowed - spent, math.sqrt(look))
        if number + 1 < len(looks):
            walk = _moved(walk, deviation, bound)
        spent, used = allowed, look
    return math.erfc(bound / math.sqrt(2 * used))


def _bound(walk: list[tuple[float, float]], deviation: float, chance: float, scale: float) -> float:
    """The bound that the motion exceeds with that `chance`, on either side."""
    unit = 1 / (deviation * math.sqrt(2))
    low, high = 0.0, 12 * scale
    for _ in range(40):
        middle = (low + high) / 2
        # The motion is symmetric, so both sides weigh the same.
        if sum(weight * math.erfc((middle - point) * unit) for point, weight in walk) > chance:
            low = middle
        else:
            high = middle
    return high


def _moved(walk: list[tuple[float, float]], deviation: float, bound: float) -> list[tuple[float, float]]:
    """The motion one look later, between the bounds."""
    count = min(_MOST_POINTS, max(_FEWEST_POINTS, math.ceil(2 * bound * _STEPS_OF_DEVIATION / deviation)))
    step = 2 * bound / count
    front, sharp = step / (deviation * math.sqrt(2 * math.pi)), -0.5 / deviation**2
    moved = []
    for place in range(count + 1):
        point = -bound + place * step
        density = sum(weight * math.exp(sharp * (point - before) ** 2) for before, weight in walk)
        moved.append((point, front * density * (0.5 if place in (0, count) else 1.0)))
    return moved


def _interpolated(value: float, values: tuple[float, ...], others: tuple[float, ...]) -> float:
    """Linear between logarithms; below the table in proportion."""
    if value <= 0 or value >= 1:
        return 0.0 if value <= 0 else 1.0
    log = math.log(value)
    place = bisect_left(values, log)
    if place == 0:
        return math.exp(others[0] + log - values[0])
    share = (log - values[place - 1]) / (values[place] - values[place - 1])
    return math.exp(others[place - 1] + share * (others[place] - others[place - 1]))

"""Noise whose values depend on the one before: an autoregression of unknown strength, and what explains values beyond it.

Likelihoods are twice their logarithm, up to a constant. Outliers are pulled in before they are taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

SIDE = 4  # runs before and after a change, at least
REACH = 2.5 * 1.4826  # values farther from the median, in median deviations, are pulled in
ROUNDING = 1e-9
_LIKELY_RANGE = 0.9
_WANDERING = 5.5  # what is taken off the score of noise that wanders

DEPENDENCE = np.array([-0.3, 0.0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96, 0.99])
INDEPENDENT = 1  # the place of 0
_FRESH = 1 - DEPENDENCE
FIRST = np.sqrt(1 - DEPENDENCE**2)
LOG_FIRST = np.log(1 - DEPENDENCE**2)


def pulled_in(window: Numbers) -> Numbers | None:
    """In units of the spread, outliers clipped; None if all values are the same."""
    away = window - median(window)
    sizes = np.abs(away)
    if sizes.max() <= ROUNDING * max(1.0, float(np.abs(window).max())):
        return None
    spread = median(sizes) or float(sizes.mean())
    clipped: Numbers = np.clip(away / spread, -REACH, REACH)
    return clipped


def near_neighbours(values: Numbers) -> Numbers:
    """Values far from the median of seven neighbours pulled in, by what is usual: outliers go, steps and trends stay."""
    padded = np.concatenate([values[3:0:-1], values, values[-2:-5:-1]])
    near = np.sort(np.lib.stride_tricks.sliding_window_view(padded, 7), axis=1)[:, 3]
    away = values - near
    # The ends have neighbours on one side only, which in a trend are all lower or all higher.
    reach = REACH * (median(np.abs(away)) or float(np.abs(away).mean())) + 2 * abs(median(np.diff(values)))
    pulled: Numbers = near + np.clip(away, -reach, reach)
    return pulled


def median(values: Numbers) -> float:
    """numpy's own takes ten times as long for a hundred values."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def log_likelihoods(x: Numbers) -> tuple[Numbers, Numbers]:
    """Twice the logarithm, up to a constant: by dependence without a step, and by dependence and place with one."""
    count = len(x)
    y = np.empty((len(DEPENDENCE), count))  # what is new in each value
    np.subtract(x[1:], np.multiply.outer(DEPENDENCE, x[:-1]), out=y[:, 1:])
    y[:, 0] = FIRST * x[0]
    after = np.cumsum(y[:, ::-1], axis=1)[:, ::-1]  # the sums from each place on
    level = FIRST**2 + (count - 1) * _FRESH**2
    shared = (FIRST * y[:, 0] + _FRESH * after[:, 1]) / level
    left = np.einsum("ij,ij->i", y, y) - shared**2 * level
    places = slice(SIDE, count - SIDE + 1)
    later = np.multiply.outer(_FRESH**2, np.arange(count - 1 - SIDE, SIDE - 2, -1))
    crossed = _FRESH[:, None] + later
    jump = y[:, places] * DEPENDENCE[:, None] + _FRESH[:, None] * after[:, places]
    gain = (jump - crossed * shared[:, None]) ** 2 / (1 + later - crossed**2 / level[:, None])
    least = count * ROUNDING  # noise-free series
    steady = LOG_FIRST - count * np.log(left + least)
    stepped = LOG_FIRST[:, None] - count * np.log(np.maximum(left[:, None] - gain, 0) + least)
    return steady, stepped


def fresh_values(rows: Numbers, dependence: int) -> Numbers:
    """The innovation of each value: what the earlier ones do not predict."""
    fresh = rows.copy()
    fresh[:, 1:] -= DEPENDENCE[dependence] * rows[:, :-1]
    fresh[:, 0] *= FIRST[dependence]
    return fresh


def best_fit(x: Numbers, shapes: Sequence[Numbers]) -> float:
    """Twice the logarithm of the likelihood of a level and these shapes, with the dependence that suits them best."""
    best = -math.inf
    for dependence, log_first in enumerate(LOG_FIRST):
        y, *columns = fresh_values(np.stack([x, np.ones(len(x)), *shapes]), dependence)
        fitted = np.column_stack(columns) @ np.linalg.lstsq(np.column_stack(columns), y, rcond=None)[0]
        left = float(np.sum((y - fitted) ** 2))
        best = max(best, float(log_first) - len(x) * math.log(left + len(x) * ROUNDING))
    return best


def likely_range(by_place: Numbers) -> tuple[int, int]:
    """The first and the last of the places that are likely, when each weighs as much as its likelihood."""
    weights = np.exp((by_place - by_place.max()) / 2)
    total = np.cumsum(weights / weights.sum())
    tail = (1 - _LIKELY_RANGE) / 2
    return int(np.searchsorted(total, tail)), int(np.searchsorted(total, 1 - tail))


def wandering_allowance(dependence: float) -> float:
    """Likelihood ratio that wandering noise adds by chance: the more, the more each value depends on the one before."""
    return _WANDERING * min(1.0, max(0.0, dependence) / 0.8)

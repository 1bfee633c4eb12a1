"""Tests of a whole table at once, with numpy: what `ratio_tests` and `drift` find row by row, to the last bit.

Only operations whose result does not depend on the order of their terms are done here: comparisons, ranks, single sums and products.
Logarithms and exponentials are Python's. Where sums of many terms decide, rows that may be affected are only singled out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchwright.analysis.statistics.dependence import FEWEST, bartels_chance, pooled_widening
from benchwright.analysis.statistics.distributions import kendall_two_sided, student_limit
from benchwright.analysis.statistics.drift import ALARM, FAR, LEAST_LAUNCHES, ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_MOST = 60  # values of a series: more take much memory
_SLACK = 1e-6  # of a limit: rounding is far below


class RankedRatios(NamedTuple):
    """Of each row of two sides: the middle of all differences, the ends of its interval, and how many differences are on the rarer
    side of what widening moves to 0. `apart`: all are on one side."""

    middle: Numbers
    low: Numbers
    high: Numbers
    factor: Numbers
    fewest: NDArray[np.int64]
    apart: NDArray[np.bool_]


def ranked_ratios(before: Numbers, after: Numbers, outside: int) -> RankedRatios:
    """Of logarithms, a row for each comparison."""
    count, n, m = len(before), before.shape[1], after.shape[1]
    ordered = np.sort((after[:, None, :] - before[:, :, None]).reshape(count, n * m), axis=1)
    both = zip(_correlations(before).tolist(), _correlations(after).tolist(), strict=True)
    factor = np.array([pooled_widening(((n, ours), (m, theirs))) for ours, theirs in both])
    middle = _middles(ordered)
    low, high = (middle - factor * (middle - ordered[:, at]) for at in (outside, n * m - 1 - outside))
    null = (middle * (1 - 1 / factor))[:, None]
    fewest = np.minimum((ordered <= null).sum(axis=1), (ordered >= null).sum(axis=1))
    apart = ~((ordered[:, 0] <= null[:, 0]) & (null[:, 0] <= ordered[:, -1]))
    return RankedRatios(middle, low, high, factor, fewest, apart)


def level_ranges(logs: Numbers) -> Numbers:
    """The range of the medians of three neighbours, with the first and the last value of each row."""
    three = np.sort(np.lib.stride_tricks.sliding_window_view(logs, 3, axis=1), axis=2)[:, :, 1]
    levels = np.concatenate([logs[:, :1], three, logs[:, -1:]], axis=1)
    found: Numbers = levels.max(axis=1) - levels.min(axis=1)
    return found


def may_drift(rows: Sequence[Sequence[float]]) -> NDArray[np.bool_]:
    """Which rows of positive values, all equally long, `drift_of` may find something in; it finds nothing in the others."""
    values = np.array(rows)
    n = values.shape[1]
    rising = np.sign(values[:, None, :] - values[:, :, None])
    scores = np.triu(rising, 1).sum(axis=(1, 2)).astype(np.int64)
    chances = {score: kendall_two_sided(score, n) for score in set(scores.tolist())}
    trends = np.array([chances[score] <= ALARM for score in scores.tolist()])
    correlated = 2 * (1 - _correlations(values)) <= _correlated_below(n) * (1 + _SLACK)
    found: NDArray[np.bool_] = trends | correlated | _may_step(values)
    return found


def _may_step(values: Numbers) -> NDArray[np.bool_]:
    n = values.shape[1]
    small = values / values.max(axis=1, keepdims=True)
    median = _middles(np.sort(small, axis=1))[:, None]
    reach = FAR * 1.4826 * _middles(np.sort(np.abs(small - median), axis=1))[:, None]
    near = np.where(reach > ROUNDING, np.clip(small, median - reach, median + reach), small)
    places = np.arange(LEAST_LAUNCHES, n - LEAST_LAUNCHES + 1)
    away = near - near.mean(axis=1, keepdims=True)
    sums, squares = np.cumsum(away, axis=1), np.sum(away**2, axis=1, keepdims=True)
    before = sums[:, places - 1]
    gain = before**2 * (1 / places + 1 / (n - places))  # squares that two levels explain
    left = squares - gain
    limit = student_limit(ALARM / len(places), n - 2)
    clear = gain * (n - 2) >= left * limit**2 * (1 - _SLACK)
    unclear = left <= _SLACK * squares  # nearly all is explained, or there is no noise
    found: NDArray[np.bool_] = (clear | unclear).any(axis=1)
    return found


@lru_cache(maxsize=256)
def _correlated_below(n: int) -> float:
    """The largest ratio of Bartels that is unlikely by chance."""
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bartels_chance(middle, n) <= ALARM else (low, middle)
    return high


def _correlations(values: Numbers) -> Numbers:
    """`neighbour_correlation` of each row."""
    n = values.shape[1]
    less = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    ranks = (2 * less + equal + 1) / 2
    spread = ((ranks - (n + 1) / 2) ** 2).sum(axis=1)  # of halves: exact in any order
    steps = (np.diff(ranks, axis=1) ** 2).sum(axis=1)
    return np.where(spread == 0, 0.0, 1 - steps / np.where(spread == 0, 1.0, spread) / 2)


def _middles(ordered: Numbers) -> Numbers:
    n = ordered.shape[1]
    found: Numbers = ordered[:, n // 2] if n % 2 else (ordered[:, n // 2 - 1] + ordered[:, n // 2]) / 2
    return found


def by_length(rows: Sequence[Sequence[Sequence[float]]]) -> dict[tuple[int, ...], list[int]]:
    """The rows whose series are of the same lengths, and so can be tested together; very short or long ones are left out."""
    found: dict[tuple[int, ...], list[int]] = {}
    for row, series in enumerate(rows):
        found.setdefault(tuple(map(len, series)), []).append(row)
    return {each: rows for each, rows in found.items() if min(each) >= FEWEST and max(each) <= _MOST}


def logs_of(rows: Sequence[Sequence[float]]) -> Numbers:
    """Python's logarithms: numpy's may differ in the last bit."""
    return np.array([list(map(math.log, row)) for row in rows])

"""Treatment ÷ control: the ratio, its interval and its p-value, from one positive value for each launch.

Everything uses logarithms, so that swapping the sides only inverts the ratio. The interval and the p-value come from the
same ordered differences, so that the interval excludes 1 exactly if p is at most 1 - confidence.
Why these tests: docs/architecture/statistics.md.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from benchwright.analysis.statistics.dependence import widening
from benchwright.analysis.statistics.distributions import (
    mann_whitney_at_most,
    signed_rank_at_most,
    student_quantile,
    student_two_sided,
)
from benchwright.core.summary import Interval

FEWEST_FOR_RANKS = 12  # pairs; with fewer, ranks are too coarse for 99 % and Student's t takes over
FEWEST_TOGETHER = 40  # rows; for fewer, numpy is not worth loading
_MOST_VALUES = 200  # per side; more are condensed to evenly ranked ones, for speed


class RatioEstimate(NamedTuple):
    ratio: float
    interval: Interval
    p_value: float


def unpaired_ratio(control: Sequence[float], treatment: Sequence[float], confidence: float) -> RatioEstimate:
    """The median of all ratios between a launch of each side (Hodges and Lehmann), with Mann and Whitney's test.

    Both account for serial correlation on either side. Values are in the order measured.
    """
    before, after = [math.log(v) for v in control], [math.log(v) for v in treatment]
    n, m = len(before), len(after)
    ordered = sorted(b - a for a in _condensed(before) for b in _condensed(after))
    found = _by_ranks(
        ordered,
        size=n * m,
        at_most=lambda u: mann_whitney_at_most(u, n, m),
        outside=_mann_whitney_outside(n, m, confidence),
        factor=widening(before, after),
    )
    null = _null(ordered, found.interval.widened)
    if ordered[0] <= null <= ordered[-1]:
        return found
    return found._replace(p_value=min(found.p_value, _welch(before, after, found.interval.widened)))


def unpaired_ratios(sides: Sequence[tuple[Sequence[float], Sequence[float]]], confidence: float) -> list[RatioEstimate]:
    """`unpaired_ratio` of many comparisons; the same to the last bit."""
    if len(sides) < FEWEST_TOGETHER:
        return [unpaired_ratio(*both, confidence) for both in sides]
    from benchwright.analysis.statistics import many_rows  # numpy

    found: dict[int, RatioEstimate] = {}
    for (n, m), rows in many_rows.by_length(sides).items():
        before, after = (many_rows.logs_of([sides[row][side] for row in rows]) for side in (0, 1))
        ranked = many_rows.ranked_ratios(before, after, _mann_whitney_outside(n, m, confidence))
        chances = {few: min(1.0, 2 * mann_whitney_at_most(few, n, m)) for few in set(ranked.fewest.tolist())}
        for row, middle, low, high, factor, fewest, apart in zip(rows, *(c.tolist() for c in ranked), strict=True):
            interval = Interval(exp_or_inf(low), exp_or_inf(high), factor)
            chance = chances[fewest]
            if apart:
                ours, theirs = ([math.log(v) for v in side] for side in sides[row])
                chance = min(chance, _welch(ours, theirs, factor))
            found[row] = RatioEstimate(exp_or_inf(middle), interval, chance)
    return [found.get(row) or unpaired_ratio(*both, confidence) for row, both in enumerate(sides)]


def paired_ratio(control: Sequence[float], treatment: Sequence[float], confidence: float) -> RatioEstimate:
    """The typical ratio within pairs: by Student's t on the logarithms below 12 pairs, by signed ranks from there on."""
    logs = _log_ratios(control, treatment)
    n = len(logs)
    if n < FEWEST_FOR_RANKS:
        return _student(logs, confidence)
    return _by_ranks(
        _walsh_averages(_condensed(logs)),
        size=_triangle(n),
        at_most=lambda w: signed_rank_at_most(w, n),
        outside=_signed_rank_outside(n, confidence),
    )


def pairs_agree(control: Sequence[float], treatment: Sequence[float]) -> bool:
    """A check on Student's t: ranks (at 5 %) agree on the direction, so that no single pair decides."""
    logs = _log_ratios(control, treatment)
    averages = _walsh_averages(logs)
    return _chance(averages, 0.0, len(averages), lambda w: signed_rank_at_most(w, len(logs))) <= 0.05


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The q-value of each p-value: the smallest false-discovery rate at which it is still a discovery."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    found = [1.0] * len(p_values)
    smallest = 1.0
    for place in range(len(order), 0, -1):
        smallest = min(smallest, p_values[order[place - 1]] * len(order) / place)
        found[order[place - 1]] = smallest
    return found


def _log_ratios(control: Sequence[float], treatment: Sequence[float]) -> list[float]:
    return [math.log(b) - math.log(a) for a, b in zip(control, treatment, strict=True)]


def _by_ranks(
    ordered: Sequence[float], *, size: int, at_most: Callable[[float], float], outside: int, factor: float = 1.0
) -> RatioEstimate:
    """From ordered differences: their median, the interval without `outside` of `size` on each side, and p.

    `factor` widens the interval around the median.
    """
    middle = statistics.median(ordered)
    skip = outside if len(ordered) == size else math.floor(outside / size * len(ordered))
    low, high = (middle - factor * (middle - end) for end in (ordered[skip], ordered[len(ordered) - 1 - skip]))
    chance = _chance(ordered, _null(ordered, factor), size, at_most)
    return RatioEstimate(exp_or_inf(middle), Interval(exp_or_inf(low), exp_or_inf(high), factor), chance)


def _null(ordered: Sequence[float], factor: float) -> float:
    """The difference that widening by `factor` moves to 0: testing it is testing 0 with the widened interval."""
    return statistics.median(ordered) * (1 - 1 / factor)


def _chance(ordered: Sequence[float], null: float, size: int, at_most: Callable[[float], float]) -> float:
    """Two-sided p-value of so few differences on one side of `null`; ties count for both sides."""
    fewest = min(bisect_right(ordered, null), len(ordered) - bisect_left(ordered, null))
    return min(1.0, 2 * at_most(fewest if len(ordered) == size else math.ceil(fewest / len(ordered) * size)))


def _student(logs: Sequence[float], confidence: float) -> RatioEstimate:
    n = len(logs)
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(n)
    reach = student_quantile(confidence, n - 1) * error
    chance = student_two_sided(mean / error, n - 1) if error > 0 else 0.0 if mean else 1.0
    return RatioEstimate(exp_or_inf(mean), Interval(exp_or_inf(mean - reach), exp_or_inf(mean + reach)), chance)


def _welch(before: Sequence[float], after: Sequence[float], factor: float) -> float:
    """The p-value by Welch's t, for sides that do not overlap at all: there ranks cannot go below 0.002 (6 against 6).

    In a table of hundreds of metrics, even a doubled time would not be significant; the distance must count too.
    """
    errors = [statistics.variance(side) / len(side) for side in (before, after)]
    whole = sum(errors)
    if whole == 0:
        return 0.0
    freedom = whole**2 / sum(e * e / (len(side) - 1) for e, side in zip(errors, (before, after), strict=True))
    t = (statistics.fmean(after) - statistics.fmean(before)) / math.sqrt(whole) / factor
    return student_two_sided(t, freedom)


@lru_cache(maxsize=256)
def _mann_whitney_outside(n: int, m: int, confidence: float) -> int:
    return _outside(lambda u: mann_whitney_at_most(u, n, m), n * m, confidence)


@lru_cache(maxsize=256)
def _signed_rank_outside(n: int, confidence: float) -> int:
    return _outside(lambda w: signed_rank_at_most(w, n), _triangle(n), confidence)


def _outside(at_most: Callable[[float], float], size: int, confidence: float) -> int:
    """How many differences lie beyond each end of the interval, as in R's `wilcox.test`.

    The largest number such that so few differences below the truth are unlikely enough; 0 if there is none.
    """
    rarely = bisect_left(range(size // 2), True, key=lambda below: 2 * at_most(below) > 1 - confidence)
    return max(0, rarely - 1)


def _walsh_averages(logs: Sequence[float]) -> list[float]:
    return sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])


def _condensed(logs: Sequence[float]) -> Sequence[float]:
    if len(logs) <= _MOST_VALUES:
        return logs
    ordered = sorted(logs)
    return [ordered[int((k + 0.5) * len(ordered) / _MOST_VALUES)] for k in range(_MOST_VALUES)]


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def exp_or_inf(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf

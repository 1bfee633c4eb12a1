"""Requests to a server, in the order they were planned: where warm-up ends, whether a queue grew, how well a percentile is known.

Requests are not independent: they wait for each other. So everything here looks at blocks of consecutive ones.
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.dependence import trend_chance
from benchwright.analysis.statistics.distributions import binomial_at_most, student_quantile
from benchwright.core.aggregates import percentile_of_ordered

_BATCH = 5  # of MSER-5 (White, 1997)
_FEWEST = 20  # requests
_CLEARLY = 3.0  # standard deviations of a rank sum: the beginning is unlike the rest
_LOOKS = 12  # at a queue
_TREND = 0.01
_GROWTH = 1.5  # times √requests: more than arrivals at random pile up
_SLOWER = 1.2  # the last third of requests, against the first
_BLOCKS = (8, 16)
_MIDDLE = (50.0, 75.0, 90.0)  # percentiles that show how values depend on each other
_LEAST_BLOCK = 10
_LEAST_BEYOND = 8.0  # independent samples beyond a percentile: with fewer it is not shown


class PercentileInterval(NamedTuple):
    """A percentile with its 95 % confidence interval. `independent`: how many independent requests would tell as much."""

    percent: float
    value: float
    low: float
    high: float
    independent: int


def settled_from(values: Sequence[float]) -> int:
    """How many of the first values are warm-up: those without which the mean of the rest is known best, at most half of them,
    and none if they are not clearly unlike the rest."""
    count = len(values) // _BATCH
    if len(values) < _FEWEST:
        return 0
    means = [statistics.fmean(values[i * _BATCH : (i + 1) * _BATCH]) for i in range(count)]
    best, chosen = math.inf, 0
    total = squares = 0.0
    for start in range(count - 1, -1, -1):
        total, squares = total + means[start], squares + means[start] ** 2
        kept = count - start
        error = max(0.0, squares - total * total / kept) / kept**2
        if start <= count // 2 and kept > 1 and error <= best:
            best, chosen = error, start
    first = chosen * _BATCH
    rest = values[first:]
    clear = _CLEARLY * math.sqrt(_inflation(rest, (50.0,)))
    return first if first and abs(_rank_sum(values[:first], rest)) > clear else 0


def _rank_sum(first: Sequence[float], rest: Sequence[float]) -> float:
    """Mann and Whitney's statistic, in standard deviations of independent values."""
    ordered = sorted(rest)
    larger = sum((bisect.bisect_left(ordered, v) + bisect.bisect_right(ordered, v)) / 2 for v in first)
    n, m = len(first), len(rest)
    return (larger - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)


def queue_grew(planned: Sequence[int], ended: Sequence[int]) -> bool:
    """Whether requests came faster than they were answered, through the run: more and more were waiting, and for longer and longer.

    A queue that only fills because answers take long does not make them slower.
    """
    if len(planned) < _FEWEST:
        return False
    order = sorted(range(len(planned)), key=planned.__getitem__)
    begin, end = planned[order[0]], planned[order[-1]]
    came, left = sorted(planned), sorted(ended)
    looks = [begin + (end - begin) * (k + 1) // _LOOKS for k in range(_LOOKS)]
    backlog = [bisect.bisect_right(came, t) - bisect.bisect_right(left, t) for t in looks]
    since = _LOOKS // 4
    arrived = len(came) - bisect.bisect_right(came, looks[since])
    if backlog[-1] - backlog[since] <= max(8.0, _GROWTH * math.sqrt(arrived)) or trend_chance(backlog) > _TREND:
        return False
    took = [float(ended[i] - planned[i]) for i in order]
    size = max(1, len(took) // _LOOKS)
    medians = [statistics.median(took[k : k + size]) for k in range(0, len(took) - size + 1, size)]
    third = max(1, len(medians) // 3)
    rises = statistics.median(medians[-third:]) > _SLOWER * statistics.median(medians[:third])
    return rises and trend_chance(medians) <= _TREND


def percentile_interval(values: Sequence[float], percent: float, level: float = 0.95) -> PercentileInterval | None:
    """Of dependent values in their order; None with too few for one.

    How many of a block lie below the percentile varies from block to block as much as their dependence makes it; that gives the
    number of independent values with the same variance, and the ranks of the interval are those of so many.
    """
    count, share = len(values), percent / 100
    if count < _FEWEST:
        return None
    in_order = sorted(values)
    value = percentile_of_ordered(in_order, percent)
    independent = count / _inflation(values, {*_MIDDLE, percent})
    if independent * min(share, 1 - share) < _LEAST_BEYOND:
        return None
    whole, tail = math.floor(independent), (1 - level) / 2
    low = bisect.bisect_left(range(whole + 1), True, key=lambda k: binomial_at_most(k, whole, share) > tail)
    high = bisect.bisect_left(range(whole + 1), True, key=lambda k: binomial_at_most(k, whole, share) >= 1 - tail)
    if low < 1 or high >= whole:
        return None
    below, above = math.floor(low * count / whole), math.ceil((high + 1) * count / whole)
    return PercentileInterval(percent, value, in_order[max(0, below - 1)], in_order[min(count, above) - 1], whole)


def _inflation(values: Sequence[float], percents: Iterable[float]) -> float:
    """How many values tell as much as one independent one, judged by how much the share below a percentile varies between blocks.

    The worst of several percentiles and sizes of blocks: the tail alone has too few values to show how they hang together.
    A variance from few blocks is itself uncertain, hence Student's t.
    """
    count, in_order, worst = len(values), sorted(values), 1.0
    for percent in percents:
        limit = percentile_of_ordered(in_order, percent)
        below = [v <= limit for v in values]
        share = sum(below) / count
        for blocks in _BLOCKS:
            if count < blocks * _LEAST_BLOCK or not 0 < share < 1:
                continue
            edges = [count * k // blocks for k in range(blocks + 1)]
            shares = [sum(below[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
            variance = statistics.variance(shares) / blocks * (student_quantile(0.95, blocks - 1) / 1.96) ** 2
            worst = max(worst, variance * count / (share * (1 - share)))
    return worst

"""The interval of a median over launches. Why this one: docs/decisions/0008-interval-of-a-median.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from benchwright.analysis.statistics.dependence import interval_widening
from benchwright.analysis.statistics.distributions import NORMAL
from benchwright.core.summary import Interval

_LARGEST_EXACT = 200


class _Place(NamedTuple):
    """Where the lower end lies: at order statistic `rank` (from 1), and how far towards the next."""

    rank: int
    onward: float


def interval_of_median(values: Sequence[float], confidence: float = 0.95, *, in_time: bool = True) -> Interval | None:
    """The confidence interval of the median over launches, from one finite value for each, in the order they ran.

    Interpolated order statistics, which assume no distribution, widened for serial correlation unless `in_time` is False:
    on a log scale where no value is negative, so that no end is either, and a rate's interval is that of its time.
    None if there are too few launches for `confidence`: it takes 6 for 95 %, 8 for 99 %.
    """
    place = _lower_place(len(values), confidence)
    if place is None:
        return None
    ordered = sorted(values)
    low = _between(ordered[place.rank - 1], ordered[place.rank], place.onward)
    high = _between(ordered[-place.rank], ordered[-place.rank - 1], place.onward)
    factor = interval_widening(values) if in_time else 1.0
    if factor == 1.0:
        return Interval(low, high)
    median = statistics.median(values)
    by_ratio = ordered[0] >= 0 and median > 0
    return Interval(_moved(median, low, factor, by_ratio), _moved(median, high, factor, by_ratio), factor)


@lru_cache(maxsize=512)
def _lower_place(count: int, confidence: float) -> _Place | None:
    """Hettmansperger and Sheather (1986): interpolates between the two exact intervals nearest to the confidence."""
    if count > _LARGEST_EXACT:
        place = count / 2 + 0.5 - NORMAL.inv_cdf((1 + confidence) / 2) * math.sqrt(count) / 2
        return _Place(math.floor(place), place - math.floor(place))
    # covered[d]: how often the median lies between the d-th lowest and the d-th highest of `count` values
    covered = [1.0]
    for rank in range(count // 2):
        covered.append(covered[-1] - 2 * math.comb(count, rank) / 2**count)
    rank = max((d for d in range(1, len(covered)) if covered[d] >= confidence), default=0)
    if rank == 0:
        return None
    inner = covered[rank + 1] if rank + 1 < len(covered) else 0.0
    surplus = (covered[rank] - confidence) / (covered[rank] - inner)
    return _Place(rank, (count - rank) * surplus / (rank + (count - 2 * rank) * surplus))


def _moved(median: float, end: float, factor: float, by_ratio: bool) -> float:
    """The end `factor` times as far from the median; `by_ratio`: on a log scale."""
    if by_ratio:
        try:
            return float(median * (end / median) ** factor)
        except OverflowError:
            pass  # hundreds of orders of magnitude apart: no scale matters
    return median + factor * (end - median)


def _between(outer: float, inner: float, onward: float) -> float:
    # Not outer + onward × (inner - outer): the difference of two huge values overflows.
    return outer if outer == inner else outer * (1 - onward) + inner * onward

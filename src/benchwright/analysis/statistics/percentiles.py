"""Percentiles with a confidence bound.

As in MLPerf LoadGen's early stopping, the bound is the most moderate sample that the true percentile does not exceed, with
the given confidence. It is never the most extreme sample, which may be an accident.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from benchwright.analysis.statistics.dependence import effective_beyond, effective_sample_size
from benchwright.analysis.statistics.distributions import binomial_at_most
from benchwright.core.aggregates import percentile_of_ordered
from benchwright.core.columns import joined, not_finite, ordered
from benchwright.core.metric import Direction
from benchwright.core.summary import Percentile

SLOW_END = (90.0, 95.0, 99.0)
# Enough to estimate the effective sample size; of more, only so many are examined, and it is never larger.
_MOST_LOOKED_AT = 1 << 15


def slow_end(series: Sequence[Sequence[float]], direction: Direction) -> tuple[Percentile, ...]:
    """p90, p95 and p99 of the pooled samples, or p10, p5 and p1 where higher is better; `series`: each launch's, in order.

    They describe the samples of these launches. Correlated samples, or launches that differ, reduce the effective sample
    size, so that the bound lies further out or there is none. A percentile is left out if less than one sample is expected
    beyond it, and all are if launches have only one sample or any is not finite.
    """
    values = joined(series)
    if len(values) <= len(series) or not_finite(values):
        return ()
    chosen = [share for share in SLOW_END if round(len(values) * (100 - share)) >= 100]
    if not chosen:
        return ()
    in_order = ordered(values)
    some = values[:: -(-len(values) // _MOST_LOOKED_AT)]
    typical: float | None = None
    found = []
    for share in chosen:
        percent = 100 - share if direction is Direction.HIGHER else share
        worth = float(len(values))
        if worth >= (samples_needed(percent) or math.inf):
            typical = effective_sample_size(some) if typical is None else typical
            # Bursts of slow steps tell less about the slow end than about the middle.
            worth = min(typical, effective_beyond(some, percentile_of_ordered(in_order, percent)))
        found.append(bounded(in_order, percent, effective=worth))
    return tuple(found)


def bounded(
    in_order: Sequence[float], percent: float, *, confidence: float = 0.99, effective: float | None = None
) -> Percentile:
    """The percentile of values in ascending order, with its confidence bound.

    The bound is an upper one from p50 on, a lower one below; None with fewer samples than `needed`. `effective`: the
    effective sample size (see `effective_sample_size`); None: all are independent. The values must be finite, at least one.
    """
    count = len(in_order)
    independent = count if effective is None else max(1, min(count, math.floor(effective)))
    share = max(percent, 100 - percent) / 100
    beyond = samples_beyond(independent, share, confidence)
    bound = None
    if beyond is not None:
        # Rounded down, so outwards.
        outside = math.floor(beyond * count / independent)
        bound = float(in_order[outside] if percent < 50 else in_order[count - 1 - outside])
    return Percentile(
        percent=percent,
        value=percentile_of_ordered(in_order, percent),
        bound=bound,
        confidence=confidence,
        samples=count,
        independent=independent,
        needed=samples_needed(percent, confidence),
    )


@lru_cache(maxsize=256)
def samples_needed(percent: float, confidence: float = 0.99) -> int | None:
    """The fewest samples that give a bound: 64 for p90, 219 for p97, 662 for p99. None for p0 and p100, which have none."""
    share = max(percent, 100 - percent) / 100
    if share >= 1:
        return None
    enough = 2
    while samples_beyond(enough, share, confidence) is None:
        enough *= 2
    return bisect_left(range(enough), True, key=lambda count: samples_beyond(count, share, confidence) is not None)


@lru_cache(maxsize=4096)
def samples_beyond(count: int, share: float, confidence: float) -> int | None:
    """How many of `count` samples may lie beyond the bound of the percentile with `share` below it; None if not even one."""
    chance = 1 - share
    if binomial_at_most(1, count, chance) > 1 - confidence + 1e-12:
        return None
    more = range(2, max(2, math.ceil(count * chance) + 1))
    return 1 + bisect_left(more, True, key=lambda beyond: binomial_at_most(beyond, count, chance) > 1 - confidence)

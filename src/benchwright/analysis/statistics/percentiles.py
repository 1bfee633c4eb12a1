"""Percentiles with the bound that their number of samples allows.

The rule is that of MLPerf LoadGen's early stopping: the bound is the most moderate sample of which it can be said, with the
given confidence, that the true percentile does not lie beyond it; and it is never the very last sample, which is one accident.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from benchwright.analysis.statistics.dependence import effective_beyond, effective_sample_size
from benchwright.analysis.statistics.distributions import binomial_at_most
from benchwright.core.metric import Direction
from benchwright.core.numbers.aggregates import percentile_of_ordered
from benchwright.core.numbers.columns import joined, not_finite, ordered
from benchwright.core.results.summary import Percentile

SLOW_END = (90.0, 95.0, 99.0)
# Enough to tell what samples are worth; of more, so many are looked at, and they are never said to be worth more.
_MOST_LOOKED_AT = 1 << 15


def slow_end(series: Sequence[Sequence[float]], direction: Direction) -> tuple[Percentile, ...]:
    """p90, p95 and p99 of all samples together, or p10, p5 and p1 where higher is better; `series`: those of each launch, in order.

    They describe the samples of these launches. Samples that resemble their neighbours, or launches that differ from each
    other, make them worth fewer, so that the bound lies further out or there is none. A percentile is left out if less
    than one sample is to be expected beyond it, and all are if launches have but one sample or if any is not finite.
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
            # Steps that are slow in bursts tell less about the slow end than about the middle.
            worth = min(typical, effective_beyond(some, percentile_of_ordered(in_order, percent)))
        found.append(bounded(in_order, percent, effective=worth))
    return tuple(found)


def bounded(
    in_order: Sequence[float], percent: float, *, confidence: float = 0.99, effective: float | None = None
) -> Percentile:
    """The percentile of values in ascending order, with a bound on how far out it may really lie.

    From p50 on the bound is an upper one, below it a lower one; None if there are fewer samples than `needed`.
    `effective`: how many independent samples the values are worth (see `effective_sample_size`); all of them if None.
    The values must be finite, and at least one.
    """
    count = len(in_order)
    independent = count if effective is None else max(1, min(count, math.floor(effective)))
    share = max(percent, 100 - percent) / 100
    beyond = samples_beyond(independent, share, confidence)
    bound = None
    if beyond is not None:
        # Rounded down, so outwards: fewer samples lie beyond.
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
    """The fewest samples that give a bound: 64 for p90, 219 for p97, 662 for p99. None for p0 and p100: no number does."""
    share = max(percent, 100 - percent) / 100
    if share >= 1:
        return None
    low, high = 1, 2
    while samples_beyond(high, share, confidence) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if samples_beyond(middle, share, confidence) is None:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=4096)
def samples_beyond(count: int, share: float, confidence: float) -> int | None:
    """How many of `count` samples may lie beyond the bound of the percentile with `share` below it; None if not even one may."""
    chance = 1 - share
    if binomial_at_most(1, count, chance) > 1 - confidence + 1e-12:
        return None
    low, high = 1, max(2, math.ceil(count * chance) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_at_most(middle, count, chance) <= 1 - confidence:
            low = middle
        else:
            high = middle
    return low

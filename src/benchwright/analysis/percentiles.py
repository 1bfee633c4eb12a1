"""Percentiles with the bound that their number of samples allows.

The rule is that of MLPerf LoadGen's early stopping: the bound is the most moderate sample of which it can be said, with the
given confidence, that the true percentile does not lie beyond it; and it is never the very last sample, which is one accident.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from benchwright.analysis.aggregate import percentile
from benchwright.analysis.distributions import binomial_at_most
from benchwright.domain.summary import Percentile


def percentile_with_bound(
    values: Sequence[float], percent: float, *, confidence: float = 0.99, effective: float | None = None
) -> Percentile:
    """The percentile of `values`, and how far out it may really lie.

    The bound is an upper one from p50 on and a lower one below. It is None if there are fewer samples than `needed`.
    `effective`: how many independent samples the values are worth (see `effective_sample_size`); all of them if None.
    `values` must not be empty.
    """
    count = len(values)
    independent = count if effective is None else max(1, min(count, math.floor(effective)))
    share = max(percent, 100 - percent) / 100
    beyond = samples_beyond(independent, share, confidence)
    bound = None
    if beyond is not None:
        ordered = sorted(values, reverse=percent < 50)
        # Rounded down, so outwards: fewer samples lie beyond.
        bound = float(ordered[count - 1 - math.floor(beyond * count / independent)])
    return Percentile(
        percent=percent,
        value=percentile(values, percent),
        bound=bound,
        confidence=confidence,
        samples=independent,
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

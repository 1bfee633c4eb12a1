"""Serial correlation: correlated launches carry less information than independent ones.

Everything uses ranks, so that neither spikes nor the shape of the distribution matter. Values are in the order measured.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from benchwright.analysis.statistics.distributions import incomplete_beta, kendall_two_sided

FEWEST = 6  # below that, every order is too likely by chance
ENOUGH = 20  # from here on, correlated launches nearly always show it
# Half of all chance correlations stay below this; above it an interval is widened.
_LEAST_CORRELATION = 0.1
_LARGEST_CORRELATION = 0.9
_CLEAR_CORRELATION, _FEWEST_TO_CORRECT = 0.3, 8
# Critical values of Bartels' statistic (1.8 % or less of random orders), counted over all orders; from 10 values on the
# Beta approximation of Bartels (1982) holds.
_SMALL_BARTELS = {6: (8, 0.0083), 7: (18, 0.0151), 8: (30, 0.0171), 9: (45, 0.0164)}


def midranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1; ties share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        for i in order[start:stop]:
            ranks[i] = (start + 1 + stop) / 2
        start = stop
    return ranks


def neighbour_correlation(values: Sequence[float]) -> float:
    """1 - half of von Neumann's ratio of the ranks: about 0 for independent values, near 1 for slow drift."""
    ranks = midranks(values)
    middle = (len(ranks) + 1) / 2
    spread = sum((r - middle) ** 2 for r in ranks)
    if spread == 0:
        return 0.0
    steps = sum((b - a) ** 2 for a, b in itertools.pairwise(ranks))
    return 1 - steps / spread / 2


def widening(*series: Sequence[float]) -> float:
    """The factor to widen an interval by, compared with independent launches; 1 if no correlation is seen.

    Several series (both sides of a comparison) are pooled. Few launches underestimate their correlation, hence the factor
    1 + 1/n; the rest is the textbook inflation of an AR(1) process.
    """
    return pooled_widening([(len(s), neighbour_correlation(s)) for s in series if len(s) >= FEWEST])


def pooled_widening(series: Sequence[tuple[int, float]]) -> float:
    """The same from the length and the correlation of each."""
    count, total = 0, 0.0
    for length, correlation in series:
        count += length
        total += length * correlation
    if not count:
        return 1.0
    correlation = total / count
    if correlation <= _LEAST_CORRELATION:
        return 1.0
    return _inflation(correlation * (1 + len(series) / count))


def interval_widening(values: Sequence[float]) -> float:
    """The factor to widen the interval of a median by, compared with independent launches.

    From 20 launches on any correlation counts: its bias of some 3r / n (Marriott and Pope, 1954) is corrected, and another
    1 / n is added because it is only known to ± 1 / √n. This makes intervals of independent launches 5 % wider on average.
    From 8 launches on only clear correlation is corrected so. Otherwise the same as `widening`.
    """
    count = len(values)
    correlation = neighbour_correlation(values)
    if count < _FEWEST_TO_CORRECT or (count < ENOUGH and correlation <= _CLEAR_CORRELATION):
        return widening(values)
    return 1.0 if correlation <= 0 else _inflation(correlation + (1 + 3 * correlation) / count)


def _inflation(correlation: float) -> float:
    limited = min(_LARGEST_CORRELATION, correlation)
    return math.sqrt((1 + limited) / (1 - limited))


def correlation_chance(values: Sequence[float]) -> float:
    """P-value of serial correlation (Bartels' rank test, one-sided)."""
    n = len(values)
    if n < FEWEST:
        return 1.0
    return bartels_chance(2 * (1 - neighbour_correlation(values)), n)


def bartels_chance(ratio: float, n: int) -> float:
    """Of von Neumann's ratio of the ranks of `n` values."""
    if n in _SMALL_BARTELS:
        steps, chance = _SMALL_BARTELS[n]
        return chance if ratio * n * (n * n - 1) / 12 <= steps + 1e-9 else 1.0
    shape = 5 * n * (n + 1) * (n - 1) ** 2 / (2 * (n - 2) * (5 * n * n - 2 * n - 9)) - 0.5
    return incomplete_beta(ratio / 4, shape, shape)


def trend_chance(values: Sequence[float]) -> float:
    """P-value of a trend (Mann and Kendall, two-sided)."""
    n = len(values)
    if n < FEWEST:
        return 1.0
    score = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    return kendall_two_sided(score, n)


def _correlation_steps(sides: Sequence[int]) -> float:
    from benchprobe.rules.precision import correlation_time_of  # of long series only

    return correlation_time_of(sides).steps


def effective_sample_size(values: Sequence[float]) -> float:
    """The number of independent samples that would tell as much about the median; at most as many as there are."""
    n = len(values)
    if n < 2 * FEWEST:
        return float(n)
    ordered = sorted(values)
    low, high = ordered[(n - 1) // 2], ordered[n // 2]
    sides = [(value > low) + (value >= high) for value in values]
    return n / _correlation_steps(sides)


def effective_beyond(values: Sequence[float], limit: float) -> float:
    """The same for the share beyond `limit`."""
    n = len(values)
    sides = [1000 if value > limit else 0 for value in values]
    share = sum(sides) / 1000 / n if n else 0.0
    if n < 2 * FEWEST or not 0 < share < 1:
        return float(n)
    # Correlation times assume unit variance and are at least one step; scaled by a thousand, that floor does not matter.
    steps = _correlation_steps(sides) / (1e6 * share * (1 - share))
    return n / max(1.0, steps)

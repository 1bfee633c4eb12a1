"""Treatment ÷ control: the ratio, its interval and how likely it is by chance, from one positive value for each launch.

Everything happens on logarithms, so that swapping the sides inverts the ratio and nothing else.
Why these tests: docs/architecture/statistics.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from benchwright.analysis.dependence import midranks, widening
from benchwright.analysis.distributions import (
    NORMAL,
    mann_whitney_at_most,
    signed_rank_at_most,
    student_quantile,
    student_two_sided,
)
from benchwright.domain.summary import Interval

FEWEST_FOR_RANKS = 12  # pairs; below, ranks are too coarse for 99 % and Student's t takes over
_MOST_VALUES = 200  # a side; more are condensed to evenly ranked ones, for time


class RatioEstimate(NamedTuple):
    ratio: float
    interval: Interval
    p_value: float


def unpaired_ratio(control: Sequence[float], treatment: Sequence[float], confidence: float) -> RatioEstimate:
    """The median of all ratios between a launch of each side (Hodges and Lehmann), with Mann and Whitney's test.

    Both widen if launches of either side resemble their neighbours. Values stand in the order they were measured.
    """
    before, after = [math.log(v) for v in control], [math.log(v) for v in treatment]
    factor = widening(before, after)
    chance = _mann_whitney(before, after, factor)
    few, many = _condensed(before), _condensed(after)
    differences = sorted(b - a for a in few for b in many)
    if len(few) < len(before) or len(many) < len(after):
        # The share of differences outside the interval is that of the full samples.
        outside = _mann_whitney_outside(len(before), len(after), confidence) / (len(before) * len(after))
        skip = math.floor(outside * len(differences))
    else:
        skip = _mann_whitney_outside(len(before), len(after), confidence)
    return _estimate(differences, skip, factor, chance)


def paired_ratio(control: Sequence[float], treatment: Sequence[float], confidence: float) -> RatioEstimate:
    """The typical ratio within pairs. Under 12 pairs Student's t on the logarithms, from there on signed ranks."""
    logs = [math.log(b) - math.log(a) for a, b in zip(control, treatment, strict=True)]
    if len(logs) < FEWEST_FOR_RANKS:
        return _student(logs, confidence)
    chance = _signed_rank(logs)
    if len(logs) > _MOST_VALUES:
        # A normal interval around the same estimate: Walsh averages grow with the square of the count.
        short = _condensed(logs)
        skip = math.floor(_signed_rank_outside(len(logs), confidence) / _triangle(len(logs)) * _triangle(len(short)))
        return _estimate(_walsh_averages(short), skip, 1.0, chance)
    return _estimate(_walsh_averages(logs), _signed_rank_outside(len(logs), confidence), 1.0, chance)


def pairs_agree(control: Sequence[float], treatment: Sequence[float]) -> bool:
    """The check beside Student's t: also by ranks (5 %) the pairs go one way, so that no single pair decides."""
    return _signed_rank([math.log(b) - math.log(a) for a, b in zip(control, treatment, strict=True)]) <= 0.05


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """For each p-value the smallest share of false discoveries at which it is still one (its q-value)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    found = [1.0] * len(p_values)
    smallest = 1.0
    for place in range(len(order), 0, -1):
        smallest = min(smallest, p_values[order[place - 1]] * len(order) / place)
        found[order[place - 1]] = smallest
    return found


def _estimate(ordered: Sequence[float], skip: int, factor: float, chance: float) -> RatioEstimate:
    middle = statistics.median(ordered)
    low, high = ordered[skip], ordered[len(ordered) - 1 - skip]
    low, high = middle - factor * (middle - low), middle + factor * (high - middle)
    return RatioEstimate(_exp(middle), Interval(_exp(low), _exp(high), factor), chance)


def _student(logs: Sequence[float], confidence: float) -> RatioEstimate:
    n = len(logs)
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(n)
    reach = student_quantile(confidence, n - 1) * error
    if error > 0:
        chance = student_two_sided(mean / error, n - 1)
    else:
        # All pairs alike: as surprising as so many coins that all fall the same way.
        chance = 2 * 0.5**n if mean else 1.0
    return RatioEstimate(_exp(mean), Interval(_exp(mean - reach), _exp(mean + reach)), chance)


def _mann_whitney(before: Sequence[float], after: Sequence[float], factor: float) -> float:
    """Two-sided, for launches that tell as much as independent ones would whose interval is `factor` times narrower."""
    n, m = len(before), len(after)
    ranks = midranks([*before, *after])
    u = sum(ranks[n:]) - m * (m + 1) / 2
    extreme = min(u, n * m - u)
    if extreme == 0:
        return min(_widened_chance(2 / math.comb(n + m, n), factor), _welch(before, after, factor))
    ties = _ties(ranks)
    if not ties:
        return _widened_chance(min(1.0, 2 * mann_whitney_at_most(extreme, n, m)), factor)
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return 1.0
    chance = 2 * (1 - NORMAL.cdf((n * m / 2 - extreme - 0.5) / math.sqrt(variance)))
    return _widened_chance(min(1.0, chance), factor)


def _welch(before: Sequence[float], after: Sequence[float], factor: float) -> float:
    """Where no launch of one side lies among those of the other, ranks say no more: 6 against 6 never go below 0.002.

    In a table of hundreds of metrics even a doubled time would drown; there the distance counts too, by Welch's t.
    """
    errors = [statistics.variance(side) / len(side) for side in (before, after)]
    whole = sum(errors)
    if whole == 0:
        return 0.0
    freedom = whole**2 / sum(e * e / (len(side) - 1) for e, side in zip(errors, (before, after), strict=True))
    t = (statistics.fmean(after) - statistics.fmean(before)) / math.sqrt(whole) / factor
    return student_two_sided(t, freedom)


def _signed_rank(logs: Sequence[float]) -> float:
    """Pratt's way with zeros: they take part in the ranking, and half of their ranks goes to each side."""
    n = len(logs)
    ranks = midranks([abs(d) for d in logs])
    up = sum(r if d > 0 else r / 2 if d == 0 else 0 for r, d in zip(ranks, logs, strict=True))
    return min(1.0, 2 * signed_rank_at_most(min(up, _triangle(n) - up), n))


def _ties(ranks: Sequence[float]) -> float:
    counts: dict[float, int] = {}
    for rank in ranks:
        counts[rank] = counts.get(rank, 0) + 1
    return sum(t**3 - t for t in counts.values())


@lru_cache(maxsize=256)
def _mann_whitney_outside(n: int, m: int, confidence: float) -> int:
    return _outside(lambda u: mann_whitney_at_most(u, n, m), n * m, confidence)


@lru_cache(maxsize=256)
def _signed_rank_outside(n: int, confidence: float) -> int:
    return _outside(lambda w: signed_rank_at_most(w, n), _triangle(n), confidence)


def _outside(at_most: Callable[[float], float], size: int, confidence: float) -> int:
    """How many differences lie outside the interval on each side: the most whose chance fits into the tail."""
    low, high = -1, size // 2
    while high - low > 1:
        middle = (low + high) // 2
        if 2 * at_most(middle) <= 1 - confidence:
            low = middle
        else:
            high = middle
    return low + 1


def _widened_chance(chance: float, factor: float) -> float:
    if factor == 1.0 or chance >= 1:
        return chance
    return 2 * (1 - NORMAL.cdf(NORMAL.inv_cdf(1 - max(chance, 1e-15) / 2) / factor))


def _walsh_averages(logs: Sequence[float]) -> list[float]:
    return sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])


def _condensed(logs: Sequence[float]) -> Sequence[float]:
    if len(logs) <= _MOST_VALUES:
        return logs
    ordered = sorted(logs)
    return [ordered[int((k + 0.5) * len(ordered) / _MOST_VALUES)] for k in range(_MOST_VALUES)]


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf

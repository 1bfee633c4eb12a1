"""How well a loop's own median step time is known: an interval from order statistics, widened for correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

ALPHA = 0.05  # over all looks together
# Beyond this many steps, one of each two neighbours is dropped, which bounds memory and the cost of a look. With so many
# steps, precision is lacking only if neighbours are nearly equal anyway.
MAX_KEPT = 1 << 17
MAX_CELLS = 512  # in which the correlation is computed: a look takes a few milliseconds at most
MIN_EFFECTIVE = 30.0  # with fewer effective samples the correlation is too uncertain to trust the interval


class MedianEstimate(NamedTuple):
    """`half_width` is relative to the median; None: too few steps to bound the median at all."""

    median_ns: float
    half_width: float | None
    effective_samples: float


class KeptSteps:
    """The measured steps in order and, for the most part, sorted; at most MAX_KEPT of them."""

    def __init__(self) -> None:
        self.count = 0
        self.in_order: list[int] = []
        self.ordered: list[int] = []
        self._stride = 1  # one of this many neighbours is kept

    def extend(self, step_ns: Sequence[int]) -> None:
        """Add steps in order."""
        first = self.count
        self.count += len(step_ns)
        chosen: Sequence[int] = step_ns
        stride = self._stride
        if stride > 1 and step_ns:
            groups = range(first // stride, (self.count - 1) // stride + 1)
            positions = [group * stride + _scatter(group, stride) % stride - first for group in groups]
            chosen = [step_ns[position] for position in positions if 0 <= position < len(step_ns)]
        self.in_order.extend(chosen)
        self.ordered.extend(chosen)
        while len(self.in_order) >= MAX_KEPT:
            self._halve()

    def _halve(self) -> None:
        # Which neighbour goes is scattered: dropping every second step would hide one half of an alternating loop.
        last = len(self.in_order) - 1
        self.in_order = [self.in_order[min(i + (_scatter(i, -self._stride) & 1), last)] for i in range(0, last + 1, 2)]
        self.ordered = sorted(self.in_order)
        self._stride *= 2


def estimate_median(kept: KeptSteps, alpha: float) -> MedianEstimate:
    """The median of the steps and its two-sided 1 - alpha interval, as the larger of the two relative half-widths."""
    ordered = kept.ordered
    ordered.sort()  # the older part is sorted already, so this costs little more than the new steps
    size = len(ordered)
    low, high = ordered[(size - 1) // 2], ordered[size // 2]
    middle = (low + high) / 2
    # 0, 1 or 2: below, at or above the median. Its correlation, not that of the times, is what widens a median's interval.
    sides = [(value > low) + (value >= high) for value in kept.in_order]
    correlation_time, freedom = correlation_time_of(sides)
    ranks = t_quantile(alpha / 2, freedom) * math.sqrt(size * correlation_time) / 2 + 0.5
    lowest = math.floor(size / 2 - ranks)
    half_width = None
    if lowest >= 0 and middle > 0:
        half_width = max(ordered[size - 1 - lowest] - middle, middle - ordered[lowest]) / middle
    return MedianEstimate(middle, half_width, size / correlation_time)


class CorrelationTime(NamedTuple):
    """`steps`: how many steps are worth one independent step; `freedom`: degrees of freedom of that estimate."""

    steps: float
    freedom: float


def correlation_time_of(sides: Sequence[int]) -> CorrelationTime:
    """The integrated correlation time of a series of 0, 1, 2 around the median, never below 1.

    The series is summed into cells; their autocovariances are added in pairs while the pairs are positive, each no
    larger than the one before (Geyer's initial monotone sequence). The more lags it takes, the less certain it is.
    """
    width = -(-len(sides) // MAX_CELLS)
    count = len(sides) // width
    start = len(sides) - count * width
    sums = [sum(sides[i : i + width]) for i in range(start, len(sides), width)]
    mean = sum(sums) / count
    cells = [value - mean for value in sums]
    variance = _autocovariance(cells, 0)
    total, pairs, smallest = 0.0, 0, math.inf
    while 2 * pairs + 1 < count // 2:
        pair = _autocovariance(cells, 2 * pairs) + _autocovariance(cells, 2 * pairs + 1)
        if pair <= 0:
            break
        smallest = min(smallest, pair)
        total += smallest
        pairs += 1
    long_run = 2 * total - variance if pairs else variance
    # Independent sides (half 0, half 2) have variance 1 a step.
    return CorrelationTime(max(1.0, long_run / width), max(1.0, count / max(1, 2 * pairs - 1)))


def spent_alpha(look: int) -> float:
    """The share of ALPHA for one look (0 is the first); the shares of all looks, however many, sum to ALPHA."""
    return ALPHA * 4 / ((look + 4) * (look + 5))


def t_quantile(tail: float, freedom: float) -> float:
    """The point that Student's t with `freedom` degrees exceeds with probability `tail` (small, upper)."""
    z = _normal_quantile(tail)
    # Fisher and Cornish's expansion: within 1 % from 5 degrees on, within 15 % below, where an interval is useless anyway.
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def _normal_quantile(tail: float) -> float:
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) / 2 > tail else (low, middle)
    return low


def _autocovariance(cells: Sequence[float], lag: int) -> float:
    total: float = sum(map(mul, cells, cells[lag:]))
    return total / len(cells)


def _scatter(number: int, round_: int) -> int:
    """A hash of a number, different in each round (the finaliser of MurmurHash3)."""
    mixed = (number + round_ * 0x9E3779B9) & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return mixed ^ mixed >> 16

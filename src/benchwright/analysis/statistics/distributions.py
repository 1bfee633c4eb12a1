"""The distributions that the tests need: exact for small samples, without scipy.

Tables are cached because a report asks for the same sizes again and again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

NORMAL = NormalDist()
_LARGEST_EXACT = 50  # above it, the normal approximations below are right to three digits


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by Lentz's continued fraction (Numerical Recipes 6.4)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    total = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            total *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * total


def student_two_sided(t: float, freedom: float) -> float:
    """The probability that Student's t is at least |t| from 0."""
    if math.isinf(t):
        return 0.0
    return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def student_quantile(confidence: float, freedom: float) -> float:
    """The t that bounds the middle `confidence` of Student's distribution."""
    return student_limit(1 - confidence, freedom)


@lru_cache(maxsize=1024)
def student_limit(chance: float, freedom: float) -> float:
    """The t that is reached or exceeded, on either side, with this `chance`."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        if student_two_sided(middle, freedom) > chance:
            low = middle
        else:
            high = middle
    return high


def binomial_at_most(k: int, n: int, chance: float) -> float:
    """P(at most k successes of n)."""
    if k < 0:
        return 0.0
    if k >= n or chance <= 0:
        return 1.0
    if chance >= 1:
        return 0.0
    logs = math.log(chance), math.log1p(-chance)
    total = 0.0
    for i in range(k + 1):
        ways = math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
        total += math.exp(ways + i * logs[0] + (n - i) * logs[1])
    return min(1.0, total)


@lru_cache(maxsize=256)
def _mann_whitney_table(n: int, m: int) -> tuple[float, ...]:
    """P(U ≤ u) without ties: the coefficients of the Gaussian binomial, summed."""
    size = n * m
    ways = [1] + [0] * size
    for i in range(1, n + 1):
        for k in range(size, m + i - 1, -1):
            ways[k] -= ways[k - m - i]
        for k in range(i, size + 1):
            ways[k] += ways[k - i]
    return _cumulated(ways)


def mann_whitney_at_most(u: float, n: int, m: int) -> float:
    """P(U ≤ u) for two samples from one continuous distribution."""
    if u < 0:
        return 0.0
    if max(n, m) <= _LARGEST_EXACT:
        return _mann_whitney_table(min(n, m), max(n, m))[min(n * m, math.floor(u))]
    spread = math.sqrt(n * m * (n + m + 1) / 12)
    return NORMAL.cdf((math.floor(u) + 0.5 - n * m / 2) / spread)


@lru_cache(maxsize=256)
def _signed_rank_table(n: int) -> tuple[float, ...]:
    ways = [1] + [0] * (n * (n + 1) // 2)
    for i in range(1, n + 1):
        for k in range(len(ways) - 1, i - 1, -1):
            ways[k] += ways[k - i]
    return _cumulated(ways)


def signed_rank_at_most(w: float, n: int) -> float:
    """P(W ≤ w), where W is the rank sum of the positive ones of n values symmetric around 0."""
    if w < 0:
        return 0.0
    if n <= _LARGEST_EXACT:
        return _signed_rank_table(n)[min(n * (n + 1) // 2, math.floor(w))]
    spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return NORMAL.cdf((math.floor(w) + 0.5 - n * (n + 1) / 4) / spread)


@lru_cache(maxsize=256)
def _inversions_table(n: int) -> tuple[float, ...]:
    ways = [1]
    for i in range(2, n + 1):
        sums = [0] * (len(ways) + i - 1)
        for k, count in enumerate(ways):
            for step in range(i):
                sums[k + step] += count
        ways = sums
    return _cumulated(ways)


def kendall_two_sided(score: int, n: int) -> float:
    """The probability that n values in random order have at least |score| more rises than falls, or falls than rises."""
    pairs = n * (n - 1) // 2
    if score == 0 or pairs == 0:
        return 1.0
    if n <= 30:
        return min(1.0, 2 * _inversions_table(n)[max(0, (pairs - abs(score)) // 2)])
    spread = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return 2 * (1 - NORMAL.cdf((abs(score) - 1) / spread))


def _cumulated(ways: list[int]) -> tuple[float, ...]:
    total = sum(ways)
    return tuple(running / total for running in accumulate(ways))

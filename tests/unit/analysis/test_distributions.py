"""The distributions against printed tables and against counting."""

from __future__ import annotations

import itertools
import math

import pytest

from benchwright.analysis.statistics.distributions import (
    binomial_at_most,
    incomplete_beta,
    kendall_two_sided,
    mann_whitney_at_most,
    signed_rank_at_most,
    student_quantile,
    student_two_sided,
)


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)]
)
def test_students_95_percent_points_are_those_of_the_tables(freedom: int, expected: float) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(expected, abs=0.001)
    assert student_two_sided(expected, freedom) == pytest.approx(0.05, abs=0.0002)


def test_student_of_two_degrees_has_its_closed_form() -> None:
    for t in (0.0, 0.3, 1.0, 5.0, 40.0):
        assert student_two_sided(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-10)
    assert student_two_sided(math.inf, 5) == 0


def test_the_incomplete_beta_function_counts_binomials() -> None:
    for k in range(10):
        # P(more than k of 10) is the incomplete beta function at the chance.
        assert 1 - binomial_at_most(k, 10, 0.3) == pytest.approx(incomplete_beta(0.3, k + 1, 10 - k), abs=1e-12)
    assert (incomplete_beta(0, 2, 3), incomplete_beta(1, 2, 3)) == (0, 1)


def test_binomials_at_their_ends() -> None:
    assert binomial_at_most(-1, 5, 0.5) == 0
    assert binomial_at_most(5, 5, 0.5) == 1
    assert binomial_at_most(2, 5, 1.0) == 0
    assert binomial_at_most(2, 4, 0.5) == pytest.approx(11 / 16)


def test_mann_whitney_is_the_count_over_all_splits() -> None:
    n, m = 4, 5
    found = []
    for chosen in itertools.combinations(range(n + m), n):
        rest = [i for i in range(n + m) if i not in chosen]
        found.append(sum(a < b for a in chosen for b in rest))
    for u in range(n * m + 1):
        assert mann_whitney_at_most(u, n, m) == pytest.approx(sum(f <= u for f in found) / len(found))
    assert mann_whitney_at_most(-1, n, m) == 0


def test_signed_ranks_are_the_count_over_all_signs() -> None:
    n = 7
    found = [
        sum(r for r, up in zip(range(1, n + 1), signs, strict=True) if up)
        for signs in itertools.product([0, 1], repeat=n)
    ]
    for w in range(n * (n + 1) // 2 + 1):
        assert signed_rank_at_most(w, n) == pytest.approx(sum(f <= w for f in found) / len(found))


def test_kendall_is_the_count_over_all_orders() -> None:
    n = 6
    scores = [
        sum((b > a) - (b < a) for a, b in itertools.combinations(order, 2))
        for order in itertools.permutations(range(n))
    ]
    for score in (1, 5, 9, 13, 15):
        expected = sum(abs(s) >= score for s in scores) / len(scores)
        assert kendall_two_sided(score, n) == pytest.approx(expected)
        assert kendall_two_sided(-score, n) == pytest.approx(expected)


@pytest.mark.parametrize("size", [50, 51])
def test_exact_and_approximate_tails_meet(size: int) -> None:
    # Two standard deviations below the middle.
    u = size * size / 2 - 2 * math.sqrt(size * size * (2 * size + 1) / 12)
    assert mann_whitney_at_most(u, size, size) == pytest.approx(0.0228, abs=0.001)
    w = size * (size + 1) / 4 - 2 * math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
    assert signed_rank_at_most(w, size) == pytest.approx(0.0228, abs=0.001)


@pytest.mark.parametrize("count", [30, 31])
def test_exact_and_approximate_trends_meet(count: int) -> None:
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    score = round(2 * spread)
    score -= (score + count * (count - 1) // 2) % 2
    assert kendall_two_sided(score, count) == pytest.approx(0.046, abs=0.004)

from __future__ import annotations

import math
import random
import statistics

import pytest
from builders import run
from comparable_runs import benchmark, result
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.comparison.compare import compare_interleaved
from benchwright.core.checkup import Noise
from benchwright.core.comparison import Verdict
from benchwright.doctor.check import ENOUGH_PAIRS, SIZES, judge_noise, noise_of

seconds = st.floats(min_value=0.05, max_value=5.0)
some_pairs = st.lists(st.tuples(seconds, seconds), min_size=ENOUGH_PAIRS, max_size=20)


def noise(pairs: list[tuple[float, float]], metric: str = "process.duration") -> Noise:
    found = noise_of(metric, pairs)
    assert found is not None
    return found


def drawn(rng: random.Random, sigma: float, count: int) -> list[tuple[float, float]]:
    """Pairs of launches that take 0.15 s, each with independent log-normal noise of `sigma`."""
    return [(0.15 * math.exp(rng.gauss(0, sigma)), 0.15 * math.exp(rng.gauss(0, sigma))) for _ in range(count)]


@given(some_pairs, st.floats(min_value=1e-3, max_value=1e3))
def test_the_unit_of_time_changes_no_share(pairs, factor):
    before, after = noise(pairs), noise([(a * factor, b * factor) for a, b in pairs])
    for name in ("ratio", "floor", "spread"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-6, abs=1e-9)
    assert after.median_s == pytest.approx(before.median_s * factor)
    assert after.detectable == pytest.approx(before.detectable, rel=1e-6, abs=1e-9)


@given(some_pairs, st.floats(min_value=1.1, max_value=4))
def test_the_same_launches_further_apart_give_a_larger_floor(pairs, times):
    before, after = noise(pairs), noise([(a**times, b**times) for a, b in pairs])
    assert after.floor >= before.floor
    assert after.spread >= before.spread
    assert all(after.detectable[n] >= before.detectable[n] for n in SIZES)


@given(some_pairs)
def test_which_of_the_two_comes_first_turns_the_ratio_and_leaves_the_floor(pairs):
    before, after = noise(pairs), noise([(b, a) for a, b in pairs])
    assert after.ratio == pytest.approx(1 / before.ratio)
    assert after.floor == pytest.approx(before.floor, abs=1e-9)


@given(some_pairs)
def test_more_launches_show_smaller_differences(pairs):
    shares = list(noise(pairs).detectable.values())
    assert shares == sorted(shares, reverse=True)


def test_drift_that_neighbours_share_is_not_in_the_floor_but_in_the_spread():
    pairs = [(0.1 * 1.2**n, 0.1 * 1.2**n) for n in range(6)]
    assert noise(pairs).floor == pytest.approx(0, abs=1e-9)
    assert noise(pairs).spread > 0.3


def test_equal_launches_have_no_noise():
    assert noise([(0.1, 0.1)] * 6).floor == 0


@pytest.mark.parametrize(
    "pairs", [[], [(1.0, 1.0)] * 2, [(1.0, 0.0)] * 6, [(1.0, math.nan)] * 6, [(math.inf, 1.0)] * 6]
)
def test_what_gives_no_interval_gives_none(pairs):
    assert noise_of("process.duration", pairs) is None


@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.1])
def test_the_true_noise_is_recovered(sigma):
    rng = random.Random(7)
    found = [noise(drawn(rng, sigma, 6)) for _ in range(400)]
    assert statistics.median(math.log1p(x.spread) for x in found) == pytest.approx(sigma, rel=0.1)
    # The interval of a ratio that is 1 holds 1 in 95 % of the trials; 92 % is three standard errors below.
    assert sum(x.interval.low <= 1 <= x.interval.high for x in found) / len(found) == pytest.approx(0.95, abs=0.033)


@pytest.mark.parametrize("sigma", [0.003, 0.03])
@pytest.mark.parametrize("pairs", SIZES)
@pytest.mark.unmeasured
def test_a_difference_of_the_size_told_is_called_four_times_in_five(pairs, sigma):
    """By the comparison itself; what is told comes from a checkup of six pairs. performance/detectable.py has more trials."""
    rng = random.Random(f"{pairs} {sigma}")
    called = 0
    for _ in range(300):
        slower = 1 + noise(drawn(rng, sigma, 6)).detectable[pairs]
        control, treatment = zip(*drawn(rng, sigma, pairs), strict=True)
        both = [
            result(benchmark(name), values, blocks=range(pairs))
            for name, values in (("a", control), ("b", [v * slower for v in treatment]))
        ]
        called += compare_interleaved(run(*both), "a", "b").effects[0].verdict is Verdict.REGRESSED
    assert called / 300 == pytest.approx(0.8, abs=0.07)


def test_three_pairs_do_not_tell_which_difference_would_be_seen():
    found = noise(drawn(random.Random(1), 0.01, 3))
    assert found.detectable == {}
    (note,) = judge_noise([found], busy=False)
    assert "-c A -c B` would show" not in note.text


@pytest.mark.parametrize(("sigma", "severity"), [(0.001, "ok"), (0.03, "warning"), (0.3, "error")])
def test_the_floor_decides_whether_times_can_be_trusted(sigma, severity):
    (note,) = judge_noise([noise(drawn(random.Random(1), sigma, 6))], busy=False)
    assert note.severity == severity
    assert "noise floor ±" in note.text
    assert (note.remedy is None) == (severity == "ok")


def test_where_only_wall_time_is_noisy_cpu_time_is_recommended():
    wall = noise(drawn(random.Random(1), 0.3, 6))
    cpu = noise(drawn(random.Random(1), 0.005, 6), "process.cpu_time")
    first, second = judge_noise([wall, cpu], busy=True)
    assert first.remedy is not None
    assert "compare CPU time" in first.remedy
    assert second.severity != "error"


def test_noise_on_a_machine_that_looks_idle_is_not_blamed_on_other_programs():
    noisy = noise(drawn(random.Random(1), 0.3, 6))
    (idle,) = judge_noise([noisy], busy=False)
    (busy,) = judge_noise([noisy], busy=True)
    assert "no program running here explains it" in (idle.remedy or "")
    assert "stop other programs" in (busy.remedy or "")

"""When a loop is warm and when it has been measured enough."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchprobe.rules.base import LoopRule
from benchprobe.rules.precision import ALPHA, MAX_KEPT, KeptSteps, correlation_time_of, spent_alpha, t_quantile
from benchprobe.rules.steadiness import MAX_CELLS, StepCells
from benchprobe.rules.stop_rules import stop_rule
from benchprobe.rules.warmup_rules import warmup_rule

MS = 1_000_000
S = 1_000_000_000


def drive(rule: LoopRule, steps: Sequence[int], begin_ns: int = 0) -> int | None:
    """How many of `steps` were measured when the rule said stop (None: never)."""
    ended = warm_up(rule, steps, begin_ns)
    return None if ended is None else ended[0]


def warm_up(rule: LoopRule, steps: Sequence[int], begin_ns: int = 0) -> tuple[int, str] | None:
    """Run `steps` as an obedient loop does; how many of them it took, and why it was over."""
    rule.begin(begin_ns)
    now, at = begin_ns, 0
    while at < len(steps):
        budget, deadline, first = rule.budget(), rule.deadline_ns(), at
        assert budget >= 1
        while at < len(steps) and at - first < budget and (at == first or deadline is None or now < deadline):
            now += steps[at]
            at += 1
        why = rule.add(steps[first:at], now)
        if why:
            return at, why
    return None


def chunked(steps: Sequence[int], sizes: Sequence[int]) -> list[Sequence[int]]:
    chunks: list[Sequence[int]] = []
    at = 0
    while at < len(steps):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(steps[at : at + size])
        at += size
    return chunks


def gaussian(seed: int, count: int, level_ns: float = MS, spread: float = 0.02) -> list[int]:
    rng = random.Random(seed)
    return [max(1, round(level_ns * rng.gauss(1, spread))) for _ in range(count)]


def autoregressive(rng: random.Random, correlation: float, count: int) -> list[float]:
    noise = [rng.gauss(0, 1)]
    for _ in range(count - 1):
        noise.append(correlation * noise[-1] + math.sqrt(1 - correlation**2) * rng.gauss(0, 1))
    return [1 + 0.02 * one for one in noise]


# --- given rules -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 500), st.lists(st.integers(1, 50), min_size=1))
def test_the_steps_rule_measures_exactly_n_steps_however_they_are_handed_over(wanted: int, sizes: list[int]) -> None:
    rule = stop_rule({"steps": wanted})
    rule.begin(0)
    seen, turn, done = 0, 0, None
    while done is None:
        size = min(sizes[turn % len(sizes)], rule.budget())
        assert size >= 1
        done = rule.add([MS] * size, 0)
        seen, turn = seen + size, turn + 1
    assert seen == wanted
    assert rule.name == "steps"


def test_the_seconds_rule_stops_at_the_first_step_end_after_that_time() -> None:
    assert drive(stop_rule({"seconds": 1}), [300 * MS] * 10, begin_ns=77) == 4


def test_without_settings_nothing_stops_the_loop() -> None:
    for settings in (None, {}, {"steps": None}):
        assert drive(stop_rule(settings), [MS] * 100_000) is None


def test_an_observation_ends_at_the_first_step_end_at_which_its_steps_took_the_interval() -> None:
    rule = stop_rule({"observations": 2, "interval_s": 1.0})
    assert drive(rule, [400 * MS, 400 * MS, 400 * MS, 900 * MS, 100 * MS, 7 * S, S]) == 5
    assert rule.detail()["observations"] == [
        {"first": 0, "steps": 3, "ns": 1200 * MS},
        {"first": 3, "steps": 2, "ns": S},
    ]


@given(
    st.integers(1, 5),
    st.lists(st.integers(1, 900 * MS), min_size=1, max_size=200),
    st.lists(st.integers(1, 7), min_size=1),
)
def test_observations_do_not_depend_on_how_the_steps_are_handed_over(
    wanted: int, steps: list[int], sizes: list[int]
) -> None:
    obedient, other = (stop_rule({"observations": wanted, "interval_s": 0.5}) for _ in range(2))
    stopped_at = drive(obedient, steps)
    other.begin(0)
    done = [other.add(chunk, 0) for chunk in chunked(steps, sizes)][-1]
    assert (done is not None) == (stopped_at is not None)
    assert obedient.detail() == other.detail()
    if stopped_at is not None:
        assert stopped_at == sum(one["steps"] for one in obedient.detail()["observations"])


def test_a_given_warm_up_is_kept_exactly() -> None:
    assert warm_up(warmup_rule({"steps": 7}), [MS] * 20) == (7, "given")
    assert warm_up(warmup_rule({"seconds": 0.005}), [2 * MS] * 20, begin_ns=5) == (3, "given")


def test_a_warm_up_of_nothing_is_over_before_the_first_step() -> None:
    for settings in ({"steps": 0}, {"seconds": 0}):
        rule = warmup_rule(settings)
        rule.begin(9)
        assert rule.budget() == 0
        assert rule.add([], 9) == "given"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "whole number"),
        ({"steps": True}, "whole number"),
        ({"steps": 5, "seconds": 1}, "give one"),
        ({"seconds": -1}, "above 0"),
        ({"seconds": float("nan")}, "above 0"),
        ({"seconds": "3"}, "above 0"),
        ({"precision": 1.0}, "fraction"),
        ({"precision": 0.01, "min_steps": 50, "max_steps": 40}, "max_steps 40 is below"),
        ({"observations": 3, "interval_s": 0}, "interval_s"),
        ({"stepz": 3}, "'stepz'"),
        ({"steps": 3, "max_seconds": 5}, "unknown setting 'max_seconds'"),
        ([3], "not a table"),
    ],
)
def test_stop_settings_that_make_no_sense_are_refused_by_name(settings: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        stop_rule(settings)


@pytest.mark.parametrize(
    "settings",
    [{"steps": -1}, {"steps": 1, "seconds": 1}, {"max_seconds": 0}, {"minimum": 3}, {"seconds": None, "x": 1}],
)
def test_warm_up_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="warm-up: "):
        warmup_rule(settings)


# --- detected warm-up ------------------------------------------------------------------------------------------------


def test_a_steady_loop_of_slow_steps_is_warm_after_ten_of_them() -> None:
    assert warm_up(warmup_rule({}), [5 * S] * 100) == (10, "detected")


def test_a_steady_loop_of_quick_steps_is_watched_for_about_half_a_second() -> None:
    spent, why = warm_up(warmup_rule({}), gaussian(1, 5000)) or (0, "")
    assert why == "detected"
    assert 400 <= spent <= 1300


def test_a_minute_of_compiling_does_not_make_the_quick_steps_after_it_count_as_watched() -> None:
    spent, why = warm_up(warmup_rule({"max_seconds": 600}), [60 * S, *gaussian(2, 5000)]) or (0, "")
    assert why == "detected"
    assert spent >= 400


def test_a_loop_that_never_settles_is_measured_from_the_cap_on() -> None:
    growing = [10 * MS * (100 + i) // 100 for i in range(5000)]
    spent, why = warm_up(warmup_rule({"max_seconds": 30}), growing) or (0, "")
    assert why == "cap"
    assert sum(growing[: spent - 1]) < 30 * S <= sum(growing[:spent])


def test_steps_too_slow_to_judge_reach_the_cap() -> None:
    assert warm_up(warmup_rule({}), [20 * S] * 10) == (3, "cap")


def test_a_cap_in_steps_is_kept_exactly() -> None:
    assert warm_up(warmup_rule({"max_steps": 50}), gaussian(3, 500)) == (50, "cap")


def decaying(steps: int, height: float, length: float) -> list[float]:
    return [1 + height * math.exp(-i / length) for i in range(steps)]


SHAPES: dict[str, list[float]] = {
    "slow first steps": [1000.0, 30.0, 10.0] + [1.0] * 8000,
    "autotuning": [1.5] * 300 + [1.0] * 8000,
    "slow decay": decaying(8000, 0.5, 300),
    "falling clock": decaying(8000, -0.1, 200),
}
NOISES: dict[str, Callable[[random.Random, int], float]] = {
    "quiet": lambda rng, i: rng.gauss(1, 0.005),
    "noisy": lambda rng, i: max(0.1, rng.gauss(1, 0.05)),
    "periodic": lambda rng, i: rng.gauss(1, 0.02) * (5 if i % 10 == 9 else 1),
    "bimodal": lambda rng, i: rng.gauss(1, 0.01) * (1.1 if rng.random() < 0.3 else 1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", NOISES)
def test_what_is_measured_after_detection_is_the_steady_loop(shape: str, noise: str) -> None:
    biases = []
    for seed in range(5):
        rng = random.Random(seed)
        steady = [NOISES[noise](rng, i) for i in range(8000)]
        spent, why = warm_up(
            warmup_rule({}), [round(MS * a * b) for a, b in zip(steady, SHAPES[shape], strict=False)]
        ) or (0, "")
        assert why == "detected"
        biases.append(SHAPES[shape][spent] - 1)
    assert abs(sum(biases) / 5) < 0.005


@given(st.integers(0, 1000), st.integers(2, 1000))
def test_detection_does_not_depend_on_the_unit_of_time(seed: int, scale: int) -> None:
    steps = [round(step * (1 + 3 / (i + 1))) for i, step in enumerate(gaussian(seed, 300, 1000, 0.05))]
    bounds = {"min_seconds": 0, "max_seconds": 1e9}
    assert warm_up(warmup_rule(bounds), steps) == warm_up(warmup_rule(bounds), [step * scale for step in steps])


@given(st.lists(st.integers(0, 1000), max_size=60), st.lists(st.integers(1, 700), min_size=1))
def test_cells_hold_all_steps_and_do_not_depend_on_how_these_are_handed_over(few: list[int], sizes: list[int]) -> None:
    steps = (few * 200)[: 200 * len(few) - 3 if few else 0]
    one_by_one, in_chunks = StepCells(), StepCells()
    for step in steps:
        one_by_one.extend([step])
    for chunk in chunked(steps, sizes):
        in_chunks.extend(chunk)
    assert (one_by_one.cells, one_by_one.width, one_by_one.count) == (in_chunks.cells, in_chunks.width, in_chunks.count)
    full = len(in_chunks.cells) * in_chunks.width
    assert len(steps) - in_chunks.width < full <= len(steps)
    assert sum(in_chunks.cells) == sum(steps[:full])
    assert len(in_chunks.cells) < MAX_CELLS


# --- precise enough --------------------------------------------------------------------------------------------------


def test_a_quiet_loop_is_precise_at_the_minimum() -> None:
    rule = stop_rule({"precision": 0.01, "min_steps": 30})
    assert drive(rule, [MS] * 100) == 30
    assert rule.detail() == {
        "median_ns": MS, "half_width": 0.0, "effective_samples": 30.0, "reached": True, "looks": 1
    }  # fmt: skip


def test_the_caps_end_it_and_it_says_that_precision_was_not_reached() -> None:
    steps = gaussian(4, 5000, spread=0.5)
    by_steps = stop_rule({"precision": 0.001, "max_steps": 777})
    by_time = stop_rule({"precision": 0.001, "max_seconds": 0.5})
    assert drive(by_steps, steps) == 777
    stopped_at = drive(by_time, steps)
    assert stopped_at is not None
    assert sum(steps[: stopped_at - 1]) < 0.5 * S <= sum(steps[:stopped_at])
    for rule in (by_steps, by_time):
        found = json.loads(json.dumps(rule.detail()))
        assert found["reached"] is False
        assert found["half_width"] > 0.001


def test_a_loop_that_ends_by_itself_still_learns_its_median() -> None:
    rule = stop_rule({"precision": 0.0001})
    assert rule.detail()["median_ns"] is None
    assert drive(rule, gaussian(5, 100)) is None
    found = rule.detail()
    assert found["median_ns"] == pytest.approx(MS, rel=0.02)
    assert 0 < found["half_width"] < 0.03
    assert found["reached"] is False
    assert found == rule.detail()


def test_two_states_of_equal_weight_are_never_called_precise() -> None:
    rng = random.Random(6)
    rule = stop_rule({"precision": 0.01, "max_steps": 3000})
    assert drive(rule, [MS if rng.random() < 0.5 else 2 * MS for _ in range(3000)]) == 3000
    assert rule.detail()["reached"] is False


def test_steps_that_tell_nearly_the_same_are_not_enough_however_close_they_are() -> None:
    for seed in range(30):
        rule = stop_rule({"precision": 0.5})
        drive(rule, [round(MS * value) for value in autoregressive(random.Random(seed), 0.8, 1000)])
        assert rule.detail()["reached"] is True
        assert rule.detail()["effective_samples"] >= 30


def test_steps_that_all_take_no_time_do_not_break_the_rule() -> None:
    rule = stop_rule({"precision": 0.01, "max_steps": 100})
    assert drive(rule, [0] * 200) == 100
    assert rule.detail()["half_width"] is None


@given(st.integers(0, 10_000), st.floats(0.001, 0.05), st.floats(0.001, 0.05))
def test_a_smaller_precision_never_stops_earlier(seed: int, one: float, other: float) -> None:
    rng = random.Random(seed)
    steps = [round(MS * value) for value in autoregressive(rng, rng.choice([0, 0.6, 0.9]), 600)]
    finer, coarser = (drive(stop_rule({"precision": p}), steps) for p in sorted((one, other)))
    assert finer is None or (coarser is not None and coarser <= finer)


@given(st.lists(st.integers(1, 10**9), max_size=300), st.integers(1, 40))
def test_the_precision_rule_takes_any_steps(steps: list[int], min_steps: int) -> None:
    rule = stop_rule({"precision": 0.01, "min_steps": min_steps})
    stopped_at = drive(rule, steps)
    assert stopped_at is None or stopped_at >= min_steps
    json.dumps(rule.detail(), allow_nan=False)


def test_the_shares_of_all_looks_sum_to_alpha() -> None:
    assert sum(spent_alpha(look) for look in range(100_000)) == pytest.approx(ALPHA, rel=1e-4)


@pytest.mark.parametrize(
    ("tail", "freedom", "table"),
    [(0.025, 5, 2.571), (0.0005, 5, 6.869), (0.005, 10, 3.169), (0.0005, 30, 3.646), (0.025, 1e9, 1.960)],
)
def test_quantiles_of_t_agree_with_the_tables(tail: float, freedom: float, table: float) -> None:
    assert t_quantile(tail, freedom) == pytest.approx(table, rel=0.01)


def test_the_correlation_time_of_an_autoregression_is_found() -> None:
    values = autoregressive(random.Random(7), 0.8, 60_000)
    # Above or below the median, an AR(1) correlates by 2/π·arcsin(ρ^k) at lag k (Sheppard's formula).
    truth = 1 + 2 * sum(2 / math.pi * math.asin(0.8**k) for k in range(1, 100))
    assert correlation_time_of([2 * (value > 1) for value in values]).steps == pytest.approx(truth, rel=0.3)
    assert correlation_time_of([0, 2] * 500).steps == 1.0


def test_a_very_long_loop_keeps_a_bounded_fair_choice_of_its_steps() -> None:
    kept = KeptSteps()
    for first in range(0, 600_000, 50_000):
        kept.extend([2 if number % 2 else 1 for number in range(first, first + 50_000)])
    assert kept.count == 600_000
    assert len(kept.in_order) == len(kept.ordered) < MAX_KEPT
    # An alternating loop stays half and half: every second step would have been all of one kind.
    assert sum(kept.in_order) / len(kept.in_order) == pytest.approx(1.5, abs=0.02)


FAMILIES: dict[str, Callable[[random.Random, int], list[float]]] = {
    "gaussian": lambda rng, n: [rng.gauss(1, 0.02) for _ in range(n)],
    # Student's t with 3 degrees is a normal over the root of a chi-square; 1 % of the steps take 3 times as long.
    "heavy tail": lambda rng, n: [
        (1 + 0.02 * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2) / 3)) * (3 if rng.random() < 0.01 else 1)
        for _ in range(n)
    ],
    "bimodal": lambda rng, n: [rng.gauss(1, 0.01) * (1.1 if rng.random() < 0.3 else 1) for _ in range(n)],
    "AR(.6)": lambda rng, n: autoregressive(rng, 0.6, n),
    "AR(.8)": lambda rng, n: autoregressive(rng, 0.8, n),
    "AR(.97)": lambda rng, n: autoregressive(rng, 0.97, n),
}
MEDIANS = {"heavy tail": 1.0003, "bimodal": 1.0056}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_interval_at_the_stop_covers_the_true_median(family: str) -> None:
    """The small sister of performance/stop_rule_honesty.py: nominal 95 %, slack for chance."""
    rng = random.Random(f"honest {family}")
    truth = MS * MEDIANS.get(family, 1.0)
    replicas, covered, known = (50 if family == "AR(.97)" else 200), 0, 0
    max_steps = 1500 if family.startswith("AR") else 500
    for _ in range(replicas):
        rule = stop_rule({"precision": 0.01, "max_steps": max_steps})
        drive(rule, [round(MS * value) for value in FAMILIES[family](rng, max_steps)])
        found = rule.detail()
        known += found["half_width"] is not None
        covered += found["half_width"] is None or abs(found["median_ns"] - truth) <= found["half_width"] * truth
    assert covered / replicas >= 0.9
    assert known / replicas >= 0.8, "a rule that never gives an interval is never wrong"

"""What the report remarks on, and that it keeps quiet about plain noise."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.remarks import far_apart, few_launches, outliers, remarks, two_groups
from benchwright.analysis.statistics.drift import level_change
from benchwright.analysis.statistics.intervals import interval_of_median
from benchwright.core.note import Note


def kinds(found: tuple[Note, ...]) -> set[str]:
    return {r.kind for r in found}


def quiet(seed: int, count: int, spread: float = 0.02) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(1, spread) for _ in range(count)]


@pytest.mark.parametrize("count", [6, 7, 9, 12, 20, 30])
@pytest.mark.unmeasured
def test_independent_launches_are_rarely_remarked_on(count: int) -> None:
    rng = random.Random(count)
    seen: Counter[str] = Counter()
    for _ in range(1000):
        seen.update(r.kind for r in remarks([rng.gauss(1, 0.02) for _ in range(count)]))
    assert seen.pop("few_launches", 0) == (1000 if count < 20 else 0)
    # 2 % and four standard errors of 1,000.
    assert all(times <= 37 for times in seen.values()), seen


@pytest.mark.unmeasured
def test_independent_samples_within_launches_are_rarely_remarked_on() -> None:
    seen: Counter[str] = Counter()
    for seed in range(200):
        seen.update(r.kind for r in remarks([1.0], [quiet(seed, 300)]))
    assert all(times <= 10 for times in seen.values()), seen


def test_an_outlier_is_named_with_its_place_and_kept() -> None:
    values = [*quiet(1, 11), 1.5]
    (far,) = outliers(values)
    assert (far.place, far.value) == (11, 1.5)
    (remark,) = [r for r in remarks(values) if r.kind == "outliers"]
    assert "launch 12 (1.50×); still counted" in remark.text


def test_launches_at_two_speeds_are_called_two_groups_with_their_shares() -> None:
    rng = random.Random(2)
    values = [rng.gauss(1.1 if n % 3 == 0 else 1.0, 0.005) for n in range(18)]
    found = two_groups(values)
    assert found is not None
    assert found.low == pytest.approx(1, abs=0.01)
    assert found.high == pytest.approx(1.1, abs=0.01)
    assert found.high_share == pytest.approx(1 / 3)
    (remark,) = [r for r in remarks(values) if r.kind == "two_groups"]
    assert "10 % apart: 67 % around" in remark.text


def test_steps_of_two_kinds_are_seen_within_a_launch_although_some_lie_between() -> None:
    rng = random.Random(3)
    samples = [rng.gauss(2.0 if n % 3 == 0 else 1.0, 0.05) for n in range(900)]
    samples[100] = samples[500] = 1.5
    rng.shuffle(samples)
    assert kinds(remarks([1.0], [samples])) == {"two_groups_within"}


def test_a_steady_rise_is_a_trend() -> None:
    values = [1 + 0.01 * n for n in range(12)]
    (remark,) = [r for r in remarks(values) if r.kind == "trend"]
    assert "rose by 7.9 %" in remark.text


def test_a_machine_that_changes_back_and_forth_slowly_is_correlated() -> None:
    noise = quiet(4, 24, 0.002)
    values = [v + 0.03 * math.sin(n / 2) for n, v in enumerate(noise)]
    assert "correlated" in kinds(remarks(values))


def test_samples_that_get_slower_within_most_launches_are_a_drift() -> None:
    series = [[v * (1 + 0.1 * n / 200) for n, v in enumerate(quiet(seed, 200))] for seed in range(4)]
    assert "drift_within" in kinds(remarks([1.0] * 4, series))
    assert "drift_within" not in kinds(remarks([1.0] * 4, [series[0], *(quiet(s, 200) for s in (5, 6, 7))]))


def test_a_spread_above_5_percent_is_noisy() -> None:
    assert "noisy" in kinds(remarks(quiet(8, 12, 0.15)))
    assert "noisy" not in kinds(remarks(quiet(8, 12, 0.02)))


@given(st.lists(st.floats(), max_size=30), st.lists(st.lists(st.floats(), max_size=80), max_size=3))
def test_any_floats_give_remarks_or_none(values: list[float], series: list[list[float]]) -> None:
    for remark in remarks(values, series):
        assert remark.text
        assert remark.remedy


@given(st.lists(st.floats(0.5, 2), min_size=6, max_size=40))
def test_groups_and_outliers_do_not_depend_on_order(values: list[float]) -> None:
    assert two_groups(values) == two_groups(values[::-1])
    assert sorted(o.value for o in outliers(values)) == sorted(o.value for o in outliers(values[::-1]))


@pytest.mark.parametrize(
    ("count", "says"),
    [(1, "from a single launch"), (5, "from 5 launches"), (6, "can go unnoticed"), (19, "can go unnoticed")],
)
def test_what_few_launches_cannot_show_is_said(count: int, says: str) -> None:
    remark = few_launches(count)
    assert remark is not None
    assert says in remark.text
    assert few_launches(20) is None


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=40))
def test_every_interval_from_few_launches_says_so_and_no_other(values: list[float]) -> None:
    assert ("few_launches" in kinds(remarks(values))) is (6 <= len(values) < 20)


@pytest.mark.parametrize("correlation", [0.6, 0.8])
@pytest.mark.parametrize("count", [6, 8, 12, 16, 19, 20, 25, 40])
def test_launches_that_depend_on_each_other_are_never_short_without_a_word(correlation: float, count: int) -> None:
    rng = random.Random(f"{correlation} {count}")
    silent = 0
    for _ in range(500):
        values = [rng.gauss(0, 1)]
        while len(values) < count:
            values.append(correlation * values[-1] + math.sqrt(1 - correlation**2) * rng.gauss(0, 1))
        launches = [1 + 0.02 * v for v in values]
        interval = interval_of_median(launches)
        assert interval is not None
        said = interval.widened > 1.05 or remarks(launches)
        silent += not said and not interval.low <= 1 <= interval.high
    assert silent <= 11  # 1 % and three standard errors of 500; the full count is performance/coverage.py's


@pytest.mark.parametrize("count", [8, 12, 20])
def test_a_step_in_mid_run_is_noticed_with_its_place_and_size(count: int) -> None:
    rng = random.Random(count)
    noticed = 0
    for _ in range(50):
        values = [rng.gauss(1, 0.01) * (1.06 if n >= count // 2 else 1) for n in range(count)]
        found = [r for r in remarks(values) if r.kind in ("step", "trend", "correlated")]
        noticed += bool(found)
    assert noticed >= 45
    (remark,) = [r for r in remarks([1.0, 1.001, 0.999, 1.002, 1.051, 1.052, 1.05, 1.051]) if r.kind == "step"]
    assert remark.text.startswith("the level changed by +5.0 % after launch 4 of 8")


def test_a_steady_rise_is_a_trend_and_no_step() -> None:
    assert "trend" in kinds(remarks([1 + 0.01 * n for n in range(20)]))


@pytest.mark.parametrize("draw", ["gauss", "spikes", "skewed"])
@pytest.mark.parametrize("count", [6, 8, 12, 20, 40])
@pytest.mark.unmeasured
def test_independent_launches_rarely_show_a_step(draw: str, count: int) -> None:
    rng = random.Random(f"{draw}{count}")

    def one() -> float:
        if draw == "gauss":
            return rng.gauss(1, 0.01)
        if draw == "skewed":
            return 1 + 0.03 * rng.expovariate(1)
        return rng.gauss(1, 0.01) * (3 if rng.random() < 0.02 else 1)

    found = sum("step" in kinds(remarks([one() for _ in range(count)])) for _ in range(400))
    assert found / 400 <= 0.035


@given(st.lists(st.integers(500, 2000), min_size=6, max_size=30), st.floats(1e-300, 1e300))
def test_a_step_does_not_depend_on_the_unit(thousandths: list[int], scale: float) -> None:
    values = [n / 1000 for n in thousandths]  # no two so close that scaling rounds them to a tie, or apart
    plain, scaled = level_change(values), level_change([v * scale for v in values])
    assert (plain is None) == (scaled is None)
    if plain is not None and scaled is not None and 1e-12 < plain.chance < 1:
        assert scaled.chance == pytest.approx(plain.chance, rel=1e-3)


@pytest.mark.parametrize("values", [[10, 1000], [10, 10, 1000, 1000], [1, 5, 25], [0.5, 1.1]])
def test_few_values_that_are_far_apart_are_told_with_their_range(values: list[float]) -> None:
    note = far_apart(values, "launches", lambda value: f"{value} ms")
    assert note is not None
    assert f"from {min(values)} ms to {max(values)} ms" in note.text


@pytest.mark.parametrize("values", [[], [10], [10, 18], [10, 12, 1000], [0.0, 0.0], [1.0, math.nan]])
def test_few_values_of_which_one_is_typical_are_not(values: list[float]) -> None:
    assert far_apart(values, "launches", str) is None

"""Change points: steps are found where they are, wandering and outliers are none, and what is settled stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchwright.analysis.change_points import FEWEST, change_points, convincing_step

Series = NDArray[np.float64]


def noise(seed: int, count: int = 100, *, spread: float = 0.02, correlation: float = 0.0) -> Series:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(count)
    for i in range(1, count):
        values[i] = correlation * values[i - 1] + (1 - correlation**2) ** 0.5 * values[i]
    return 1 + spread * values


def stepped(series: Series, *steps: tuple[int, float]) -> Series:
    for place, ratio in steps:
        series = series * np.where(np.arange(len(series)) >= place, ratio, 1)
    return series


@pytest.mark.parametrize("ratio", [1.2, 0.8, 1.05, 0.95])
def test_a_step_is_found_with_its_place_and_size(ratio: float) -> None:
    (found,) = change_points(stepped(noise(1, spread=0.01), (60, ratio)))
    assert abs(found.place - 60) <= 1
    assert found.earliest <= 60 <= found.latest
    assert found.ratio == pytest.approx(ratio, abs=0.01)
    assert found.confidence > 0.99
    assert found.settled


def test_a_regression_that_was_fixed_is_two_changes() -> None:
    first, second = change_points(stepped(noise(2, 150, spread=0.01), (50, 1.1), (80, 1 / 1.1)))
    assert abs(first.place - 50) <= 1
    assert abs(second.place - 80) <= 1
    assert first.ratio == pytest.approx(1.1, abs=0.02)
    assert second.ratio == pytest.approx(1 / 1.1, abs=0.02)


def test_few_unchanged_series_are_alarmed_however_strongly_values_depend_on_each_other() -> None:
    for correlation in (0.0, 0.6, 0.9):
        alarmed = sum(bool(change_points(noise(seed, correlation=correlation))) for seed in range(60))
        assert alarmed <= 8  # 5 % are 3; more than 8 has a chance below 1 %


def test_few_long_series_are_alarmed_and_a_late_step_is_found_in_them() -> None:
    series = [noise(seed, 5000) for seed in range(8)]
    assert sum(bool(change_points(each)) for each in series) <= 2  # 5 % are 0.4; more than 2 has a chance below 1 %
    (found,) = change_points(stepped(noise(3, 5000), (4200, 1.05)))
    assert abs(found.place - 4200) <= 3
    assert found.settled


def test_a_long_series_keeps_what_was_settled_in_its_beginning() -> None:
    series = stepped(noise(5, 2000), (700, 1.06), (1400, 0.97))
    settled = [point.place for point in change_points(series) if point.settled and not point.drifting]
    for length in (900, 1203, 1600, 1777):
        earlier = [p.place for p in change_points(series[:length]) if p.settled and not p.drifting]
        assert earlier == settled[: len(earlier)]


def test_a_slow_trend_over_a_long_series_is_found() -> None:
    series = noise(6, 3000) * (1 + 0.1 * np.clip((np.arange(3000) - 1000) / 1000, 0, 1))
    found = change_points(series)
    assert [point.ratio > 1 for point in found if point.drifting]


def test_steps_of_5_percent_are_found_in_noise_of_2_percent() -> None:
    found = [change_points(stepped(noise(seed), (50, 1.05))) for seed in range(60)]
    near = sum(any(abs(point.place - 50) <= 3 for point in points) for points in found)
    assert near >= 51  # of 97 %, fewer has a chance below 0.1 %


@settings(
    max_examples=40, deadline=None, derandomize=True
)  # 1 series in 300 is so near the threshold that it is alarmed
@given(st.integers(0, 99), st.floats(0.01, 100), st.integers(0, 20))
def test_one_outlier_alone_is_no_change(place: int, ratio: float, seed: int) -> None:
    series = noise(seed)
    if change_points(series):
        return
    series[place] *= ratio
    assert change_points(series) == []


@pytest.mark.parametrize("place", [0, 1, 50, 94, 96, 98, 99])
def test_one_outlier_in_exact_values_is_no_change(place: int) -> None:
    series = [1000.0] * 100
    series[place] = 2000.0
    assert change_points(series) == []


def test_exact_values_that_step_are_a_change_at_that_place() -> None:
    (found,) = change_points([1000.0] * 40 + [1001.0] * 30)
    assert (found.place, found.earliest, found.latest) == (40, 40, 40)
    assert found.ratio == pytest.approx(1.001)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-9, 1e9), st.sampled_from([1.0, 1.05, 0.9]))
def test_the_unit_does_not_matter(seed: int, unit: float, ratio: float) -> None:
    series = stepped(noise(seed), (40, ratio))
    plain, scaled = change_points(series), change_points(series * unit)
    assert [(p.place, p.settled) for p in scaled] == [(p.place, p.settled) for p in plain]
    assert [p.ratio for p in scaled] == pytest.approx([p.ratio for p in plain])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.6]))
def test_read_backwards_the_step_is_at_the_same_place(seed: int, correlation: float) -> None:
    logs = np.log(stepped(noise(seed, 80, correlation=correlation), (30, 1.15)))
    forth, back = convincing_step(logs), convincing_step(logs[::-1])
    assert forth is not None
    assert back is not None
    assert abs(back.place - (80 - forth.place)) <= 1
    assert back.score == pytest.approx(forth.score)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(13, 60), st.floats(0.8, 1.3))
def test_what_is_settled_stays_when_runs_are_added(seed: int, place: int, ratio: float) -> None:
    series = stepped(noise(seed, 110, correlation=0.3), (place, ratio))
    before: list[int] = []
    for count in range(FEWEST, 111, 7):
        now = [point.place for point in change_points(series[:count]) if point.settled]
        assert now[: len(before)] == before
        before = now


def test_a_change_is_told_before_it_is_settled() -> None:
    series = stepped(noise(3, 65, spread=0.005), (60, 1.3))
    (found,) = change_points(series)
    assert found.place == 60
    assert not found.settled


def test_few_or_equal_or_no_runs_have_no_change() -> None:
    assert change_points([]) == []
    assert change_points([1.0] * 5 + [2.0] * 5) == []
    assert change_points([3.0] * 50) == []
    assert change_points([0.0] * 50) == []


def test_values_that_are_zero_or_negative_can_change_too() -> None:
    (found,) = change_points([0.0] * 30 + [5.0] * 30)
    assert found.place == 30
    assert found.ratio == float("inf")


def test_a_long_history_is_quick_and_keeps_every_change() -> None:
    series = stepped(noise(4, 3000, spread=0.01), (500, 1.1), (1500, 0.9), (2800, 1.1))
    places = [point.place for point in change_points(series) if point.confidence > 0.999]
    assert len(places) == 3
    assert all(abs(a - b) <= 2 for a, b in zip(places, (500, 1500, 2800), strict=True))


def ramp(size: float, begin: int = 0, end: int = 100, count: int = 100) -> Series:
    shape: Series = 1 + size * np.clip((np.arange(count) - begin) / (end - begin), 0, 1)
    return shape


@pytest.mark.parametrize("size", [0.05, 0.1, 0.2, 0.5, 1.0, -0.3])
def test_what_slowly_became_worse_is_a_trend_with_its_size(size: float) -> None:
    found = [change_points(noise(seed, spread=0.01) * ramp(size)) for seed in range(30)]
    trends = [points[0] for points in found if len(points) == 1 and points[0].drifting]
    assert len(trends) >= 26  # of 97 %, fewer has a chance below 1 %
    assert np.median([point.ratio - 1 for point in trends]) == pytest.approx(size, rel=0.15)
    assert sum(point.place <= 25 and point.end == 100 and not point.settled for point in trends) >= len(trends) - 2


def test_a_line_without_noise_is_a_trend() -> None:
    (found,) = change_points(1 + 0.005 * np.arange(100))
    assert (found.place, found.end, found.drifting, found.settled) == (0, 100, True, False)
    assert found.ratio == pytest.approx(1.495, rel=0.01)


def test_a_trend_has_a_beginning_and_an_end() -> None:
    found = [change_points(noise(seed, spread=0.01) * ramp(0.2, 30, 70)) for seed in range(20)]
    trends = [points[0] for points in found if len(points) == 1]
    assert len(trends) >= 17
    assert all(point.drifting and abs(point.place - 30) <= 6 and abs(point.end - 70) <= 6 for point in trends)
    assert all(point.settled for point in trends)
    assert sum(point.earliest <= 30 <= point.latest for point in trends) >= 0.7 * len(trends)
    assert all(point.ratio == pytest.approx(1.2, abs=0.02) for point in trends)


def test_of_saw_teeth_rises_and_falls_are_told() -> None:
    level = 1 + 0.3 * (np.arange(100) % 50) / 50
    for seed in range(10):
        points = change_points(noise(seed, spread=0.01) * level)
        assert [(point.drifting, point.ratio > 1) for point in points] == [(True, True), (False, False), (True, True)]
        assert abs(points[1].place - 50) <= 1
        assert all(point.earliest <= point.place <= point.latest for point in points)
        assert points[1].ratio == pytest.approx(1 / 1.3, abs=0.03)


def test_a_trend_over_thousands_of_runs_is_one() -> None:
    (found,) = change_points(noise(1, 2000, spread=0.01) * ramp(0.5, 0, 2000, 2000))
    assert found.drifting
    assert found.ratio == pytest.approx(1.5, abs=0.02)


@pytest.mark.parametrize(
    "spreads",
    [np.repeat([0.01, 0.05], 50), np.repeat([0.05, 0.01], 50), np.tile(np.repeat([0.01, 0.05], [20, 5]), 4)],
    ids=["noisier", "quieter", "bursts"],
)
def test_changed_noise_is_no_changed_level(spreads: Series) -> None:
    alarmed = sum(bool(change_points(1 + spreads * (noise(seed, spread=1.0) - 1))) for seed in range(60))
    assert alarmed <= 8  # 5 % are 3; more than 8 has a chance below 1 %


def test_a_straight_drift_is_told_from_steps() -> None:
    drifts = [change_points(noise(seed) * ramp(0.1)) for seed in range(20)]
    assert sum(len(points) == 1 and points[0].drifting for points in drifts) >= 17
    steps = [change_points(stepped(noise(seed), (50, 1.05))) for seed in range(40)]
    assert sum(any(point.drifting for point in points) for points in steps) <= 3
    stairs = [change_points(stepped(noise(seed), (20, 1.05), (60, 1.05))) for seed in range(40)]
    assert (
        sum(any(point.drifting for point in points) for points in stairs) <= 10
    )  # two such steps are much like a line


def test_only_the_part_that_drifts_is_called_so() -> None:
    level = np.concatenate([np.ones(60), np.full(60, 0.8), 0.8 * (1 + 0.2 * np.arange(100) / 100)])
    step, trend = change_points(noise(3, 220, spread=0.01) * level)
    assert abs(step.place - 60) <= 1
    assert not step.drifting
    assert trend.drifting
    assert abs(trend.place - 120) <= 15
    assert trend.ratio == pytest.approx(1.2, abs=0.02)

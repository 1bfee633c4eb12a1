"""Medians over launches and their intervals."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.summary import median_interval, overlap, summarize
from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction
from benchwright.domain.run import Launch
from benchwright.domain.status import Status

numbers = st.floats(-1e9, 1e9, allow_nan=False)


def launch(*values: float, metric: str = "rate", **labels: str) -> Launch:
    m = Measurement(
        metric=metric, unit="items/s", direction=Direction.HIGHER, samples=values, source="loop", labels=labels
    )
    return Launch(job="j", status=Status.OK, measurements=(m,))


@pytest.mark.parametrize("count", range(1, 6))
def test_five_launches_or_fewer_give_no_interval(count: int) -> None:
    assert median_interval([float(n) for n in range(count)]) is None


def test_six_launches_give_nearly_their_whole_range() -> None:
    interval = median_interval([3.0, 6.0, 2.0, 5.0, 1.0, 4.0])
    assert interval is not None
    assert 1.0 < interval.low < 2.0
    assert 5.0 < interval.high < 6.0


def test_launches_that_resemble_the_ones_before_them_get_a_wider_interval() -> None:
    shuffled, wandering = [1.0, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0], [float(n) for n in range(1, 9)]
    plain, wide = median_interval(shuffled), median_interval(wandering)
    assert plain is not None
    assert wide is not None
    assert plain.widened == 1
    assert wide.widened > 1.5
    assert wide.low < plain.low < plain.high < wide.high


@given(st.lists(numbers, min_size=6, max_size=60))
def test_the_median_lies_in_its_interval(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    slack = 1e-9 * max(abs(v) for v in values)
    assert interval.low - slack <= statistics.median(values) <= interval.high + slack


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random.seed(7)
    hits = 0
    for _ in range(2000):
        interval = median_interval([random.expovariate(1) for _ in range(11)])
        assert interval is not None
        hits += interval.low <= 0.693147 <= interval.high
    assert 0.93 <= hits / 2000 <= 0.98


def test_a_launch_counts_once_however_many_samples_it_has() -> None:
    (summary,) = summarize([launch(1.0, 1.0, 1.0, 1.0, 1.0), launch(3.0)])
    assert summary.values == (1.0, 3.0)
    assert summary.value == 2.0
    assert summary.interval is None


def test_labels_keep_measurements_apart() -> None:
    found = summarize([launch(1.0, device="0"), launch(2.0, device="1")])
    assert [(s.labels["device"], s.value) for s in found] == [("0", 1.0), ("1", 2.0)]


def test_overlap_is_the_common_share_of_the_measured_time() -> None:
    def spanning(start: int, end: int) -> Launch:
        return Launch(job="j", status=Status.OK, facts={"measured_ns": [start, end]})

    assert overlap([spanning(0, 10), spanning(5, 20)]) == pytest.approx(0.25)
    assert overlap([spanning(0, 10), spanning(15, 20)]) == 0.0
    assert overlap([spanning(0, 10)]) is None
    assert overlap([spanning(0, 10), Launch(job="k", status=Status.FAILED)]) is None
    # Two of three that agree say nothing about the third.
    assert overlap([spanning(0, 10), spanning(0, 10), Launch(job="k", status=Status.OK)]) is None

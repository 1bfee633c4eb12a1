"""Medians over launches and their intervals."""

from __future__ import annotations

import random
import statistics
from typing import Any

import builders
import pytest
from builders import measurement
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.statistics.intervals import interval_of_median
from benchwright.analysis.summary import summarize
from benchwright.core.launches import overlap
from benchwright.core.run import Launch

numbers = st.floats(-1e9, 1e9, allow_nan=False)


def launch(*values: float, metric: str = "rate", **labels: str) -> Launch:
    return builders.launch(measurement(*values, metric=metric, labels=labels))


@pytest.mark.parametrize("count", range(1, 6))
def test_five_launches_or_fewer_give_no_interval(count: int) -> None:
    assert interval_of_median([float(n) for n in range(count)]) is None


def test_six_launches_give_nearly_their_whole_range() -> None:
    interval = interval_of_median([3.0, 6.0, 2.0, 5.0, 1.0, 4.0])
    assert interval is not None
    assert 1.0 < interval.low < 2.0
    assert 5.0 < interval.high < 6.0


def test_launches_that_resemble_the_ones_before_them_get_a_wider_interval() -> None:
    shuffled, wandering = [1.0, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0], [float(n) for n in range(1, 9)]
    plain, wide = interval_of_median(shuffled), interval_of_median(wandering)
    assert plain is not None
    assert wide is not None
    assert plain.widened == 1
    assert wide.widened > 1.5
    assert wide.low < plain.low < plain.high < wide.high


@given(st.lists(numbers, min_size=6, max_size=60))
def test_the_median_lies_in_its_interval(values: list[float]) -> None:
    interval = interval_of_median(values)
    assert interval is not None
    slack = 1e-9 * max(abs(v) for v in values)
    assert interval.low - slack <= statistics.median(values) <= interval.high + slack


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random.seed(7)
    hits = 0
    for _ in range(2000):
        interval = interval_of_median([random.expovariate(1) for _ in range(11)])
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


def test_overlap_is_the_share_of_the_measured_time_in_which_all_ran() -> None:
    def spanning(start: int, end: int, ran_on_until: int | None = None) -> Launch:
        more = {} if ran_on_until is None else {"ran_on_until_ns": ran_on_until}
        return builders.launch(facts={"measured_ns": [start, end], **more})

    assert overlap([spanning(0, 10), spanning(5, 20)]) == pytest.approx(10 / 25)  # both from 5 to 10
    assert overlap([spanning(0, 10, ran_on_until=20), spanning(5, 20)]) == pytest.approx(20 / 25)  # waited for
    assert overlap([spanning(0, 10, ran_on_until=12), spanning(0, 10)]) == 1.0
    assert overlap([spanning(0, 10), spanning(15, 20)]) == 0.0
    assert overlap([spanning(0, 10)]) is None
    assert overlap([spanning(0, 10), builders.failed_launch(job="k")]) is None
    # Two of three that agree say nothing about the third.
    assert overlap([spanning(0, 10), spanning(0, 10), builders.launch(job="k")]) is None


def measured(samples: tuple[float, ...], **fields: Any) -> Launch:
    given = {"metric": "step_time", "unit": "s", "aggregate": "median"} | fields
    return builders.launch(measurement(*samples, **given))


def test_percentiles_are_of_the_samples_of_all_launches_together() -> None:
    launches = [measured(tuple(float(n) for n in range(start, start + 50))) for start in (0, 50)]
    (summary,) = summarize(launches)
    assert [(p.percent, p.samples) for p in summary.percentiles] == [(90, 100), (95, 100), (99, 100)]
    assert summary.percentiles[0].value == pytest.approx(89.1)


@pytest.mark.parametrize(
    "fields",
    [
        {"aggregate": "last"},  # a loss: a course
        {"source": "sampler", "metric": "cpu.use"},  # how often depends on the clock
        {"source": "give", "metric": "loss", "aggregate": "last"},
        {"metric": "rate"},  # the step time says it
        {"metric": "validate.rate"},
    ],
)
def test_what_is_no_distribution_has_no_percentiles(fields: dict[str, object]) -> None:
    (summary,) = summarize([measured(tuple(float(n) for n in range(100)), **fields)])
    assert summary.percentiles == ()


def test_a_rate_found_in_a_log_has_percentiles() -> None:
    (summary,) = summarize([measured(tuple(float(n) for n in range(100)), metric="rate", source="log")])
    assert len(summary.percentiles) == 3

"""The figures of whole generations, from their calls and the steps of the loop."""

from __future__ import annotations

import pytest

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.kinds.models.generations import of_generations
from benchwright.record.loops.steps import samples_of

STEPS = Measurement(
    metric="step_time",
    unit="s",
    direction=Direction.LOWER,
    samples=samples_of([1.0, 2.0]),
    warmup_samples=samples_of([9.0]),
    source="loop",
    labels={},
)
TOLD = {
    "event": "generations",
    "first_s": [8.0, 0.2, 0.4],
    "whole_s": [9.0, 1.0, 2.0],
    "tokens": [10, 10, 6],
    "longest": [5, 5, 3],
}


def test_warm_up_is_kept_apart_and_each_call_counts_its_own_tokens() -> None:
    first, further, rate = of_generations(TOLD, [STEPS])
    assert [list(m.samples) for m in (first, further, rate)] == [
        [0.2, 0.4],
        pytest.approx([0.8 / 4, 1.6 / 2]),
        pytest.approx([10.0, 3.0]),
    ]
    assert list(first.warmup_samples) == [8.0]
    assert (rate.metric, rate.unit, rate.direction) == ("throughput.tokens", "tokens/s", Direction.HIGHER)


def test_a_figure_that_some_call_lacks_is_left_out() -> None:
    told = {**TOLD, "longest": [5, 1, 3], "tokens": [10, None, 6]}
    assert [m.metric for m in of_generations(told, [STEPS])] == ["time.first_token"]


def test_damaged_lists_give_no_figures() -> None:
    assert of_generations({**TOLD, "tokens": [1]}, [STEPS]) == []
    assert of_generations({"event": "generations"}, [STEPS]) == []
    assert of_generations(TOLD, []) == []


def test_times_between_tokens_are_a_distribution_of_their_own() -> None:
    told = {**TOLD, "between_s": [[2.0], [0.1, 0.2, 0.3, 0.2], None]}
    between = of_generations(told, [STEPS])[-1]
    assert between.metric == "time.between_tokens"
    assert list(between.samples) == [0.1, 0.2, 0.3, 0.2], "a call whose times were not kept has none"
    assert list(between.warmup_samples) == [2.0]
    for damaged in ([[2.0]], [[2.0], ["x"], None], "x"):
        assert len(of_generations({**TOLD, "between_s": damaged}, [STEPS])) == 3

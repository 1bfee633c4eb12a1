"""Loops measured by observations, and what is given in them."""

from __future__ import annotations

import pytest

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.record.loops.loops import LoopRecord
from benchwright.record.loops.measurements import given_measurement, loop_measurements


def record_of(seconds: list[float], spans: list[tuple[int, int]], items: int = 4) -> LoopRecord:
    record = LoopRecord(1, "train", counts=True)
    ns = [round(s * 1e9) for s in seconds]
    record.add_steps({"t": 0, "phase": "warmup", "step_ns": ns[:2], "wait_ns": [0, 0], "items": items})
    record.add_steps({"t": 0, "phase": "measured", "step_ns": ns, "wait_ns": [0] * len(ns), "items": items})
    done = [{"first": first, "steps": steps, "ns": 0} for first, steps in spans]
    record.stop = {"event": "stop", "detail": {"interval_s": 0.3, "observations": done}}
    return record


def test_each_observation_is_one_rate_over_its_own_steps() -> None:
    found, _ = loop_measurements(record_of([0.1, 0.2, 0.4, 0.1, 0.3], [(0, 2), (2, 1), (3, 2)]), {})
    rate = next(m for m in found if m.metric == "rate")
    assert rate.samples == pytest.approx((8 / 0.3, 4 / 0.4, 8 / 0.4))
    assert rate.warmup_samples == pytest.approx((8 / 0.3,))  # divided in the same way
    assert len(next(m for m in found if m.metric == "step_time").samples) == 5


def test_without_observations_each_step_is_a_rate() -> None:
    record = record_of([0.1, 0.2], [])
    record.stop = None
    rate = next(m for m in loop_measurements(record, {})[0] if m.metric == "rate")
    assert rate.samples == pytest.approx((40.0, 20.0))


@pytest.mark.parametrize(("name", "unit"), [("ttft_ms", "ms"), ("wait_s", "s"), ("itl_us", "µs")])
def test_a_time_that_is_given_has_its_unit_and_its_median(name: str, unit: str) -> None:
    m = given_measurement(name, name, [3.0, 1.0, 2.0])
    assert (m.unit, m.aggregate, m.direction) == (unit, "median", Direction.LOWER)


def test_what_describes_the_workload_is_neither_better_nor_worse() -> None:
    m = given_measurement("flops_per_item.bf16", "flops_per_item.bf16", [2e9])
    assert (m.unit, m.aggregate, m.direction) == ("FLOP", "last", Direction.NEITHER)
    assert given_measurement("bytes_per_item", "bytes_per_item", [8.0]).unit == "B"
    assert given_measurement("x_per_item_s", "x_per_item_s", [8.0]).unit is None
    assert given_measurement("loss", "loss", [1.0]).aggregate == "last"


def rate_of(record: LoopRecord) -> Measurement:
    return next(m for m in loop_measurements(record, {})[0] if m.metric == "rate")


def test_the_rate_is_in_what_the_program_calls_its_items() -> None:
    record = record_of([0.1, 0.2], [])
    record.stop, record.units = None, {"tokens": None}
    found, notes = loop_measurements(record, {})
    assert [m.unit for m in found if m.metric in ("rate", "step_rate")] == ["tokens/s", "tokens/s"]
    assert not [note for note in notes if "unit" in note.text or "counts" in note.text]


def test_steps_whose_items_are_unknown_are_no_tokens() -> None:
    record = LoopRecord(1, "train", counts=True, units={"tokens": None})
    record.add_steps({"t": 0, "step_ns": [10**8], "wait_ns": [0], "items": None})
    assert (rate_of(record).unit, rate_of(record).samples) == ("steps/s", pytest.approx((10.0,)))


def test_items_called_steps_are_still_counted_as_items() -> None:
    record = record_of([0.1, 0.2], [])
    record.stop, record.units = None, {"steps": None}
    assert rate_of(record).samples == pytest.approx((40.0, 20.0))


@pytest.mark.parametrize(
    ("units", "words"),
    [
        (["tokens", "images"], "'tokens' and 'images' in one rate"),
        (["x" * 30], "not a short word"),
        (["a\nb"], "not a short word"),
    ],
)
def test_a_unit_that_changes_or_is_no_word_is_not_used_and_the_reader_is_told(units: list[str], words: str) -> None:
    record = record_of([0.1, 0.2], [])
    record.stop, record.units = None, dict.fromkeys(units)
    assert rate_of(record).unit == "items/s"
    assert any(words in note.text for note in loop_measurements(record, {})[1])

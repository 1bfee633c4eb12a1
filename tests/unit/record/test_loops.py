"""Loops measured by observations, and what is given in them."""

from __future__ import annotations

import pytest

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
    assert (m.unit, m.aggregate, m.direction) == (None, "last", Direction.NEITHER)
    assert given_measurement("loss", "loss", [1.0]).aggregate == "last"

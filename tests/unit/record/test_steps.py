"""Columns of steps: the same numbers as steps one by one, however they are divided into events."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.record.loops.steps import LONG, Steps, samples_of

Batch = tuple[list[int], Any]
sizes = st.one_of(st.none(), st.integers(0, 512))


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    """Step times with their items: one number for all, none, or one for each."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        times = draw(st.lists(st.integers(1, 10**9), min_size=1, max_size=8))
        items = draw(st.one_of(sizes, st.lists(sizes, min_size=len(times), max_size=len(times))))
        found.append((times, items))
    return found


def added(found: list[Batch]) -> tuple[Steps, list[int], list[int | None]]:
    steps, times, items, t = Steps(), [], [], 1000
    for step_ns, of in found:
        steps.add({"t": t, "step_ns": step_ns, "wait_ns": [0] * len(step_ns), "items": of})
        t += sum(step_ns)
        times += step_ns
        items += of if isinstance(of, list) else [of] * len(step_ns)
    return steps, times, items


def nanoseconds(steps: Steps) -> list[int]:
    return [round(s * 1e9) for s in steps.seconds]


@given(batches())
def test_columns_hold_what_the_events_say(found: list[Batch]) -> None:
    steps, times, items = added(found)
    assert nanoseconds(steps) == times
    assert [None if math.isnan(n) else n for n in steps.items.column()] == items
    known = [n for n in items if n is not None]
    assert steps.items.total == (sum(known) if len(known) == len(items) else None)
    assert steps.items.partly_known == (0 < len(known) < len(items)) or len(known) == len(items)
    assert steps.host_ns == sum(times)
    assert steps.total_s == pytest.approx(sum(times) * 1e-9)


@given(batches(), st.data())
def test_a_part_is_that_part_of_every_column(found: list[Batch], data: st.DataObject) -> None:
    steps, times, items = added(found)
    begin = data.draw(st.integers(0, len(times)))
    end = data.draw(st.integers(begin, len(times)))
    part = steps.part(begin, end)
    assert nanoseconds(part) == times[begin:end]
    assert [None if math.isnan(n) else n for n in part.items.column()] == items[begin:end]
    assert part.host_ns == sum(times[begin:end])


@given(batches(), st.data())
def test_the_steps_that_ended_by_a_time_are_counted(found: list[Batch], data: st.DataObject) -> None:
    steps, times, _ = added(found)
    moment = data.draw(st.integers(0, 1000 + sum(times) + 10))
    ends, t = [], 1000
    for ns in times:
        t += ns
        ends.append(t)
    assert steps.until(moment) == sum(1 for end in ends if end <= moment)


@given(batches(), st.data())
def test_without_the_last_step_all_is_as_if_it_had_never_been(found: list[Batch], data: st.DataObject) -> None:
    steps, times, items = added(found)
    for count in range(1, len(times) + 1):
        steps.drop_last()
        kept = times[:-count]
        assert nanoseconds(steps) == kept
        assert [None if math.isnan(n) else n for n in steps.items.column()] == items[:-count]
        assert (steps.host_ns, steps.last_ns) == (sum(kept), 1000 + sum(kept))
        assert steps.until(10**12) == len(kept)
    steps.drop_last()
    assert steps.first_ns is None


@pytest.mark.parametrize(
    "broken",
    [
        {"step_ns": [1, 2], "wait_ns": [0]},
        {"step_ns": [1], "wait_ns": [0], "items": [1, 2]},
        {"step_ns": [2**70], "wait_ns": [0]},
        {"step_ns": ["1"], "wait_ns": [0]},
        {"step_ns": [1], "wait_ns": [0], "items": "many"},
        {"step_ns": [1], "wait_ns": [0], "device_ns": [1, 2], "window_ns": 3},
    ],
)
def test_an_event_that_makes_no_sense_adds_nothing(broken: dict[str, Any]) -> None:
    steps = Steps()
    steps.add({"t": 0, "step_ns": [5], "wait_ns": [1], "items": 2})
    with pytest.raises((ValueError, TypeError, OverflowError)):
        steps.add({"t": 9, **broken})
    assert (nanoseconds(steps), len(steps.waits), steps.items.total, steps.host_ns) == ([5], 1, 2, 5)


def test_few_samples_are_a_tuple_and_many_an_array() -> None:
    assert samples_of([1, 2]) == (1.0, 2.0)
    assert samples_of([1.0] * LONG) == array("d", [1.0] * LONG)
    assert samples_of([1.0], like=range(LONG)) == array("d", [1.0])

"""From stamps to columns and lines, for any order of steps and values."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from benchprobe.stream.columns import columns, complete_steps, step_times
from benchprobe.stream.events import Chunk, given_values, steps_lines

SCALARS = st.one_of(st.integers(), st.booleans(), st.text(), st.none(), st.floats())
GIVEN = st.one_of(st.floats(), st.dictionaries(st.sampled_from(["loss", "a", "b", "ü"]), SCALARS, max_size=3))
STEPS = st.lists(st.lists(GIVEN, max_size=3), max_size=30)


def filled(steps):
    chunk = Chunk(loop=1, first=100, phase="measured", ask=1000, batch_size=None)
    stamp = 1000
    for values in steps:
        chunk.entries += [stamp + 3, *values, stamp + 10]
        chunk.sizes.append(4)
        stamp += 10
    return chunk


def expected(steps):
    found = []
    for number, values in enumerate(steps, start=100):
        for value in values:
            for name, one in [("loss", value)] if isinstance(value, float) else value.items():
                found.append((name, number, one))
    return sorted(found, key=lambda x: x[0])


def read(lines):
    found, step_ns, wait_ns = [], [], []
    for line in lines:
        event = json.loads(line)
        assert event["first"] == 100 + len(step_ns)
        step_ns += event["step_ns"]
        wait_ns += event["wait_ns"]
        for name, column in event.get("given", {}).items():
            offsets, values = given_values(column, len(event["step_ns"]))
            found += [(name, event["first"] + o, v) for o, v in zip(offsets, values, strict=True)]
    return sorted(found, key=lambda x: x[0]), step_ns, wait_ns


def same(a, b):
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return both_nan or a == b


def comes_back(steps, lines):
    found, step_ns, wait_ns = read(lines)
    wanted = expected(steps)
    return (
        (step_ns, wait_ns) == ([10] * len(steps), [3] * len(steps))
        and [entry[:2] for entry in found] == [entry[:2] for entry in wanted]
        and all(same(a[2], b[2]) for a, b in zip(found, wanted, strict=True))
    )


@given(STEPS)
def test_whatever_is_given_comes_back_at_its_step(steps):
    assert comes_back(steps, steps_lines(filled(steps), process=7, max_line_bytes=1 << 20))


@given(STEPS, st.integers(150, 600))
def test_the_same_in_short_lines(steps, limit):
    lines = list(steps_lines(filled(steps), process=7, max_line_bytes=limit))
    assert comes_back(steps, lines)
    for line in lines:
        assert len(line) <= limit or len(json.loads(line)["step_ns"]) == 1


@given(STEPS, st.lists(st.integers(0, 100)))
def test_the_same_when_the_writer_looks_at_any_moment(steps, moments):
    whole = filled(steps)
    growing = filled([])
    growing.sizes = whole.sizes
    lines = []
    for moment in sorted(moments):
        growing.entries = whole.entries[:moment]
        lines += steps_lines(growing, process=7, max_line_bytes=1 << 20)
    growing.entries = whole.entries
    lines += steps_lines(growing, process=7, max_line_bytes=1 << 20)
    assert comes_back(steps, lines)


@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_many_numbers_are_written_exactly(losses):
    steps = [[loss] for loss in losses] * 600
    assert comes_back(steps, steps_lines(filled(steps), 7, 1 << 20))


def test_a_step_that_has_not_ended_is_left_for_later():
    assert columns([1003, 0.5], 1000).entries == 0
    part = columns([1003, 0.5, 1010, 1011, 0.25], 1000)
    assert (part.step_ns, part.entries, part.end) == ([10], 3, 1010)
    assert part.given == {"loss": ([0], [0.5])}


def test_steps_are_counted_and_timed_from_their_stamps_alone():
    entries = [1003, {"a": 1}, 1010, 1011, 0.25, 1030, 1031]
    assert complete_steps(entries) == 2
    assert step_times(entries, 1000) == [10, 20]


def test_values_that_a_device_still_computes_hold_the_chunk_back():
    chunk = filled([[0.5]])
    chunk.hold = True
    assert list(steps_lines(chunk, 7, 1 << 20)) == []
    chunk.closed = True
    assert len(list(steps_lines(chunk, 7, 1 << 20))) == 1


def test_items_that_differ_are_listed_and_equal_ones_are_one_number():
    chunk = filled([[], [], []])
    chunk.sizes = [4, 4, 2]
    (line,) = steps_lines(chunk, 7, 1 << 20)
    assert json.loads(line)["items"] == [4, 4, 2]
    assert chunk.items(0, 2) == 4

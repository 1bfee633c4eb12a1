"""What a loop delivers beside what its median step promises, and why they differ."""

from __future__ import annotations

import statistics

import pytest

from benchwright.core.note import Note
from benchwright.record.loops.measurements import uneven_pace
from benchwright.record.loops.steps import Steps

MS = 1_000_000


def told(step_ns: list[int], wait_ns: list[int] | None = None) -> Note | None:
    steps = Steps()
    steps.add({"t": 0, "step_ns": step_ns, "wait_ns": wait_ns or [0] * len(step_ns), "items": 10})
    rates = [10 * 1e9 / ns for ns in step_ns]
    return uneven_pace("train", steps, statistics.median(rates), 10e9 * len(step_ns) / sum(step_ns))


def test_even_steps_need_no_word() -> None:
    assert told([MS, MS + 1000, MS - 1000] * 30) is None


@pytest.mark.parametrize(
    ("step_ns", "wait_ns", "reason", "figure"),
    [
        ([MS] * 9 + [50 * MS], None, "a pause", "one step of 50 ms, usually 1 ms"),
        (([MS] * 9 + [50 * MS]) * 10, None, "slow steps", "10 % of them take 85 % of the time"),
        (([MS] * 9 + [50 * MS]) * 10, ([0] * 9 + [49 * MS]) * 10, "waits for data", "83 % of the time"),
        ([MS] * 200 + [4000 * MS], None, "a pause", "one step of 4.00 s, usually 1 ms"),
        ([10 * MS, 19 * MS, 13 * MS] * 20, [1000] * 60, "bursts", "most steps take 10 ms to 19 ms"),
        (([10 * MS, 19 * MS, 13 * MS] * 20) + [30 * MS], None, "bursts", "most steps take 10 ms to 19 ms"),
        ([MS] * 9 + [50 * MS], [100] * 10, "a pause", "one step of 50 ms, usually 1 ms"),
        ([10 * MS, 19 * MS, 13 * MS] * 20, None, "bursts", "most steps take 10 ms to 19 ms"),
    ],
)
def test_the_reason_is_named(step_ns: list[int], wait_ns: list[int] | None, reason: str, figure: str) -> None:
    note = told(step_ns, wait_ns)
    assert note is not None
    assert note.text.endswith(f"because of {reason}")
    assert note.evidence == figure


def test_a_loop_that_delivers_more_than_its_median_step_is_mentioned_too() -> None:
    note = told([10 * MS] * 6 + [MS] * 5)
    assert note is not None
    assert "delivers more than its median step" in note.text

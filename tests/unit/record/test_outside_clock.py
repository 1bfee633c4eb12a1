"""The supervisor's lines between those of a program tell how long it really took."""

from __future__ import annotations

from typing import Any

import builders
import pytest

from benchwright.core.run import Launch
from benchwright.core.status import Reason, Status
from benchwright.kinds.registry import kind_of
from benchwright.record import record_launch

JOB = builders.job(id="b.D0", benchmark="b")
BENCHMARK = builders.benchmark("b")
SECOND = 1_000_000_000


def run(speed: float, seconds: int = 10, offset_ns: int = 0, pace: float = 1.0) -> Launch:
    """A loop whose clock runs `speed` times as fast as the supervisor's, who looks twice a second.

    `pace`: below 1 its lines are written later and later, as of a loop whose steps take no time at all.
    """
    events: list[dict[str, Any]] = [
        {"event": "start", "pid": 7, "t": 0, "wall": 0.0},
        {"event": "loop", "process": 7, "loop": 1, "name": "train", "counts": True, "t": offset_ns},
    ]
    for half in range(2 * seconds):
        now = half * SECOND // 2
        began = offset_ns + round(now * speed * pace)
        steps = [round(0.1 * SECOND * speed * pace)] * 5
        written = offset_ns + round(now * speed)
        more = {"step_ns": steps, "wait_ns": [0] * 5, "items": 10, "written": written}
        events.append({"event": "sample", "sampler": "process", "t": now, "values": {"rss_bytes": 1}})
        events.append({"event": "steps", "process": 7, "loop": 1, "phase": "measured", "t": began, **more})
    end = seconds * SECOND
    events.append({"event": "end", "t": end, "wall": float(seconds), "exit_code": 0, "duration_s": 60.0})
    return record_launch(events, JOB, BENCHMARK, kind_of)


def test_a_clock_that_agrees_is_believed_and_its_bounds_are_kept() -> None:
    launch = run(1.0)
    assert launch.status is Status.OK
    claimed, least, most = launch.facts["loops"][0]["outside_s"]
    assert claimed == pytest.approx(9.5)
    assert least < claimed < most
    assert most - least < 4


@pytest.mark.parametrize("speed", [0.1, 0.4, 2.5])
def test_a_clock_that_runs_slow_or_fast_makes_its_rates_invalid(speed: float) -> None:
    """At a tenth of the speed the program would be called ten times as fast as it is."""
    launch = run(speed)
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)
    assert "the supervisor's clock" in (launch.detail or "")


@pytest.mark.parametrize("speed", [0.85, 1.15])
def test_what_the_bounds_allow_is_not_accused(speed: float) -> None:
    assert run(speed).status is Status.OK


def test_a_program_that_writes_late_is_not_accused() -> None:
    assert run(1.0, pace=0.3).status is Status.OK


def test_a_program_that_was_stopped_is_not_accused() -> None:
    """It writes its first steps once it goes on, and only then does the supervisor write when the pause began."""
    events: list[dict[str, Any]] = [
        {"event": "start", "pid": 7, "t": 0, "wall": 0.0},
        {"event": "loop", "process": 7, "loop": 1, "name": "train", "counts": True, "t": 0},
        {"event": "sample", "sampler": "process", "t": 5 * SECOND, "values": {"rss_bytes": 1}},
        {"event": "pause", "t": SECOND // 10, "what": "program", "ns": 5 * SECOND},
        {"event": "sample", "sampler": "process", "t": 51 * SECOND // 10, "values": {"rss_bytes": 1}},
        {"event": "end", "t": 52 * SECOND // 10, "wall": 5.2, "exit_code": 0, "duration_s": 5.2},
    ]
    common = {"event": "steps", "process": 7, "loop": 1, "phase": "measured", "items": 10, "wait_ns": [0] * 2}
    before = {"t": 0, "step_ns": [SECOND // 20, 101 * SECOND // 20], "written": 505 * SECOND // 100}
    after = {"t": 51 * SECOND // 10, "step_ns": [SECOND // 20] * 2, "written": 515 * SECOND // 100}
    events[5:5] = [common | after]
    events[3:3] = [common | before]
    launch = record_launch(events, JOB, BENCHMARK, kind_of)
    assert (launch.status, launch.detail) == (Status.OK, None)


def test_a_run_too_short_to_tell_is_left_alone() -> None:
    assert run(0.3, seconds=1).status is Status.OK


def test_a_clock_with_another_beginning_is_told_and_samples_are_not_matched_with_it() -> None:
    launch = run(1.0, offset_ns=500 * SECOND)
    assert launch.status is Status.OK
    assert "off by 500 s" in [n.evidence for n in launch.notes]
    assert "measured_ns" not in launch.facts


def test_a_system_clock_that_was_set_is_told() -> None:
    events = [
        {"event": "start", "pid": 7, "t": 0, "wall": 1000.0},
        {"event": "end", "t": 5 * SECOND, "wall": 998.0, "exit_code": 0, "duration_s": 5.0},
    ]
    launch = record_launch(events, JOB, BENCHMARK, kind_of)
    assert [n.evidence for n in launch.notes] == ["by -7 s"]

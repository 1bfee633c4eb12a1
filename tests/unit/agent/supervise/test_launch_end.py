"""The processes of a launch end together, where only some of them report."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import job

from benchwright.agent.supervise.launch_end import LaunchEndWatch
from benchwright.core.job import LaunchEnd

S = 1_000_000_000
STOPPED = '{"event":"loop_end","process":7,"t":1,"loop":1,"steps":22,"how":"stopped"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "end"
    made.mkdir()
    return made


def watch(folder: Path, place: int, *, reports: bool, size: int = 1) -> LaunchEndWatch:
    end = LaunchEnd(folder=str(folder), size=size, place=place, reports=reports, grace_s=30.0)
    made = job("x", folder=folder.parent, id=f"job{place}", launch_end=end, grace_s=5.0)
    Path(made.stream).touch()
    return LaunchEndWatch(made)


def write(folder: Path, place: int, text: str) -> None:
    with open(folder.parent / f"job{place}.data", "a") as stream:
        stream.write(text)


def test_nothing_ends_before_all_that_report_were_stopped(folder: Path) -> None:
    first, second, silent = (watch(folder, place, reports=place < 2, size=2) for place in range(3))
    write(folder, 0, STOPPED)
    write(folder, 1, STOPPED.replace("stopped", "exhausted") + STOPPED[:20])  # a line that is not complete yet
    for now in (1 * S, 100 * S):
        assert [each.is_due(now) for each in (first, second, silent)] == [False] * 3
    write(folder, 1, STOPPED[20:])
    assert not second.is_due(200 * S)
    assert not silent.is_due(201 * S)
    assert not silent.is_due(230 * S)
    assert silent.is_due(232 * S)  # the grace of a stop is over
    assert second.is_due(232 * S)


def test_once_one_has_ended_the_others_have_the_grace_of_any_job(folder: Path) -> None:
    reporting, silent = watch(folder, 0, reports=True), watch(folder, 1, reports=False)
    write(folder, 0, STOPPED)
    assert not reporting.is_due(1 * S)
    silent.say_gone()
    assert silent.was_measured()  # so its failure is forgiven
    assert not reporting.is_due(2 * S)
    assert not reporting.is_due(6 * S)
    assert reporting.is_due(8 * S)


def test_a_failure_before_the_stop_stays_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    reporting, silent = watch(folder, 0, reports=True), watch(folder, 1, reports=False)
    silent.say_gone()
    assert not silent.was_measured()
    assert not reporting.is_due(1000 * S)
    assert not reporting.is_due(2000 * S)


def test_a_launch_of_which_all_report_is_left_alone(tmp_path: Path) -> None:
    alone = LaunchEndWatch(job("x", folder=tmp_path))
    assert not alone.is_due(1000 * S)
    assert alone.next_ns is None
    assert not alone.was_measured()

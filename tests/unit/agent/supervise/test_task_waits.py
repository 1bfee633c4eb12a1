"""Looks at the threads and processes of a program."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchwright.agent.supervise import program
from benchwright.agent.supervise.program import TaskWaits

pytestmark = pytest.mark.skipif(
    not Path("/proc/thread-self/children").exists(), reason="the kernel does not list children"
)
SECOND = 1_000_000_000


@pytest.fixture
def shell() -> Iterator[int]:
    """One that waits for a child."""
    words = ["sh", "-c", "echo; sleep 60; true"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        os.killpg(process.pid, signal.SIGKILL)


def looks(waits: TaskWaits, until_s: float) -> int:
    """How often it looks in that time."""
    count = 0
    while waits.due_ns is not None and waits.due_ns < until_s * SECOND:
        waits.look(waits.due_ns)
        count += 1
    return count


def test_a_program_that_does_not_wait_is_looked_at_rarely(shell: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_NOTICED_NS", 10**18)
    assert looks(TaskWaits(shell, 0), 10) < 100


def test_one_that_waits_is_looked_at_every_fiftieth_of_its_time(shell: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_NOTICED_NS", 0)
    monkeypatch.setattr(program, "_MOST_COST", 1e9)  # a look takes longer on a busy machine
    assert 100 < looks(TaskWaits(shell, 0), 10) < 500


def test_more_threads_than_can_be_looked_at_are_not(shell: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_MOST_TASKS", 0)
    waits = TaskWaits(shell, 0)
    assert looks(waits, 10) == 1
    assert waits.seen((5, 7)) is None

"""A program that was stopped, a supervisor that could not run, a machine that was suspended: always told, never ok in silence."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from builders import events, job
from command_line import CommandLine

from benchwright.agent.supervise import pauses
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs waitid and /proc")
# A shell that stops itself; its helper continues it.
STOPPED = "(sleep 0.7; kill -CONT $$) & kill -STOP $$; wait"
CHILD_STOPPED = "sleep 1 & kill -STOP $!; sleep 1.3; kill -CONT $!; wait"


def notes(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [note for launch in body["results"][0]["launches"] for note in launch["notes"]]


def test_a_program_that_was_stopped_says_so_in_every_report(bw: CommandLine) -> None:
    body = bw.json("run", "--", "sh", "-c", STOPPED)
    assert body["status"] == "ok"
    [note] = [n for n in notes(body) if n["kind"] == "suspended"]
    assert "stopped by a signal" in note["text"]
    # By the helper's own sleep, which began a moment before the stop.
    assert 0.5 < float(note["figure"].removesuffix(" s")) <= body["results"][0]["launches"][0]["duration_s"] + 0.01
    for how in ([], ["--format", "markdown"], ["--format", "html"]):
        assert "stopped by a signal" in " ".join(bw("report", "last", *how).stdout.split())


def test_a_child_of_the_program_that_was_stopped_is_told(bw: CommandLine) -> None:
    body = bw.json("run", "--sample-interval", "0.1s", "--", "sh", "-c", CHILD_STOPPED)
    [note] = [n for n in notes(body) if n["kind"] == "suspended"]
    assert "processes of the program were stopped" in note["text"]
    assert " samples" in note["figure"]


def test_a_program_that_nobody_stopped_has_no_such_note(bw: CommandLine) -> None:
    assert not [n for n in notes(bw.json("run", "--", "sleep", "0.2")) if n["kind"] == "suspended"]


def pauses_of(folder: Path, listener: Listener) -> list[dict[str, Any]]:
    """The pauses in the stream of a program that runs for three seconds."""
    sleep = job("sleep", "3", folder=folder, sample_interval_s=0.1)
    with LocalExecutor() as executor:
        executor.run([sleep], listener)
    return events(sleep, "pause")


def test_a_supervisor_that_could_not_run_is_told(tmp_path: Path) -> None:
    """It may stamp the end of the program too late, and the duration is too long then."""

    class StopSupervisor(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            supervisor = psutil.Process(pid).ppid()
            os.kill(supervisor, signal.SIGSTOP)
            threading.Timer(1.6, os.kill, (supervisor, signal.SIGCONT)).start()

    [pause] = pauses_of(tmp_path, StopSupervisor())
    assert pause["what"] == "supervisor"
    assert pause["ns"] > 1e9


# A sampler that is stopped while it samples, once.
STOPPED_SAMPLER = """
import os, signal

class Stopped:
    name, interval_s, budget = "stopped", 60.0, 1.0

    def sample(self, now_ns):
        os.system(f"(sleep 1.6; kill -CONT {os.getpid()}) &")
        os.kill(os.getpid(), signal.SIGSTOP)
        return []

    def close(self):
        pass

def open_sampler(subject):
    return Stopped()
"""


def test_a_supervisor_that_was_stopped_while_it_sampled_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver may take as long to answer, and is no reason to say so."""
    installed = tmp_path / "installed"
    (installed / "stopped-1.0.dist-info").mkdir(parents=True)
    entry = "[benchwright.samplers]\nstopped = stopped_sampler:open_sampler\n"
    (installed / "stopped-1.0.dist-info" / "entry_points.txt").write_text(entry)
    (installed / "stopped_sampler.py").write_text(STOPPED_SAMPLER)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    [pause] = pauses_of(tmp_path, Listener())
    assert pause["what"] == "supervisor"
    assert pause["ns"] > 1e9


def test_a_machine_that_was_suspended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock that goes on while the machine sleeps; a test cannot suspend the machine, so that clock is moved."""
    real, ahead_ns = pauses.time.clock_gettime_ns, [0]

    def moved(clock: int) -> int:
        return real(clock) + (ahead_ns[0] if clock == pauses.time.CLOCK_BOOTTIME else 0)

    monkeypatch.setattr(pauses.time, "clock_gettime_ns", moved)
    watch = pauses.Pauses()
    assert watch.since_last(60.0) == []
    ahead_ns[0] = 4_000_000_000
    [(what, _, paused_ns)] = watch.since_last(60.0)
    assert what == "machine"
    assert 3.9e9 < paused_ns <= 4e9
    assert watch.since_last(60.0) == []

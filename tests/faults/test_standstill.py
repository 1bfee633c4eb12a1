"""A program that was stopped, a supervisor that could not run, a machine that was suspended: always told, never ok in silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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
STOPPED = (
    "(until grep -q '^State:.T' /proc/$$/status; do sleep 0.02; done; sleep 0.7; kill -CONT $$) & kill -STOP $$; wait"
)
# Its child is continued once it was seen stopped in a sample.
CHILD_STOPPED = """
sleep 0.1 & kill -STOP $!
until grep -qs '"stopped"' {base}/runs/*/*.data; do sleep 0.05; done
kill -CONT $!; wait
"""


def notes(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [note for launch in body["results"][0]["launches"] for note in launch["notes"]]


def test_a_program_that_was_stopped_says_so_in_every_report(bw: CommandLine) -> None:
    body = bw.json("run", "--", "sh", "-c", STOPPED)
    assert body["status"] == "ok"
    [note] = [n for n in notes(body) if n["kind"] == "suspended"]
    assert "stopped by a signal" in note["text"]
    # By the helper's own sleep.
    assert 0.5 < float(note["figure"].removesuffix(" s")) <= body["results"][0]["launches"][0]["duration_s"] + 0.01
    for how in ([], ["--format", "markdown"], ["--format", "html"]):
        assert "stopped by a signal" in " ".join(bw("report", "last", *how).stdout.split())


def test_a_child_of_the_program_that_was_stopped_is_told(bw: CommandLine) -> None:
    body = bw.json("run", "--sample-interval", "0.1s", "--", "sh", "-c", CHILD_STOPPED.format(base=bw.base))
    [note] = [n for n in notes(body) if n["kind"] == "suspended"]
    assert "processes of the program were stopped" in note["text"]
    assert " samples" in note["figure"]


def test_a_program_that_nobody_stopped_has_no_such_note(bw: CommandLine) -> None:
    assert not [n for n in notes(bw.json("run", "--", "sleep", "0.2")) if n["kind"] == "suspended"]


# Continues a process a while after it was stopped.
CONTINUE = """
until grep -q '^State:.T' /proc/$1/status; do sleep 0.02; done
sleep 1.6
kill -CONT $1
touch continued
"""


def reported_pauses(folder: Path, listener: Listener) -> list[tuple[str, bool]]:
    """Reported in the stream of a program that runs until its supervisor was stopped and continued: what stood still, and
    whether for all the time it was stopped."""
    (folder / "continue.sh").write_text(CONTINUE)
    line = "until test -e continued; do sleep 0.05; done; sleep 0.3"
    waits = job(line, folder=folder, shell=True, sample_interval_s=0.1)
    with LocalExecutor() as executor:
        executor.run([waits], listener)
    return [(pause["what"], pause["ns"] > 1.4e9) for pause in events(waits, "pause")]


def test_a_supervisor_that_could_not_run_is_told(tmp_path: Path) -> None:
    """It may stamp the end of the program too late, and the duration is too long then."""
    helpers = []

    class StopSupervisor(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            supervisor = psutil.Process(pid).ppid()
            helpers.append(subprocess.Popen(["sh", "continue.sh", str(supervisor)], cwd=tmp_path))
            os.kill(supervisor, signal.SIGSTOP)

    found = reported_pauses(tmp_path, StopSupervisor())
    assert ("supervisor", True) in found
    assert {what for what, _ in found} == {"supervisor"}
    assert [helper.wait() for helper in helpers] == [0]


# A sampler that is stopped while it samples, once.
STOPPED_SAMPLER = """
import os, signal, subprocess

class Stopped:
    name, interval_s, budget = "stopped", 0.1, 1.0
    helper = None

    def sample(self, now_ns):
        if self.helper is None:
            self.helper = subprocess.Popen(["sh", "continue.sh", str(os.getpid())], cwd={folder!r})
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
    (installed / "stopped_sampler.py").write_text(STOPPED_SAMPLER.format(folder=str(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(installed))
    found = reported_pauses(tmp_path, Listener())
    assert ("supervisor", True) in found
    assert {what for what, _ in found} == {"supervisor"}


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

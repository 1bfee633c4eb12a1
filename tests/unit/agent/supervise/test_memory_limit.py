"""A job that uses more memory than it may is killed, with that as the reason."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import pytest
from builders import events
from builders import job as job_in

from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
MIB = 1 << 20
# A child that has the same memory as its parent, and one that has more.
SHARED = "import os, time; kept = bytearray(100 << 20); pid = os.fork(); time.sleep(1.5); pid and os.waitpid(pid, 0)"
GROWING = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; kept = bytearray(400 << 20); time.sleep(600)']); print(p.pid, flush=True); time.sleep(600)"


def test_all_its_processes_count_and_all_are_killed(tmp_path: Path) -> None:
    job = job_in(sys.executable, "-c", GROWING, folder=tmp_path, max_memory_bytes=200 * MIB, grace_s=600.0, echo=True)
    heard: list[str] = []

    class Hear(Listener):
        def on_output(self, job_id: str, text: str) -> None:
            heard.append(text)

    with LocalExecutor() as executor:
        [outcome] = executor.run([job], Hear())
    assert (outcome.out_of_memory, outcome.timed_out) == (True, False)
    assert outcome.signal in (signal.SIGTERM, signal.SIGKILL)
    assert "MiB, more than --max-memory 200 MiB" in (outcome.detail or "")
    assert outcome.duration_s < 300  # not after the time it would have had to end by itself
    assert not psutil.pid_exists(int("".join(heard)))
    assert events(job, "end")[0]["out_of_memory"]


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    job = job_in(sys.executable, "-c", SHARED, folder=tmp_path, max_memory_bytes=170 * MIB)
    with LocalExecutor() as executor:
        [outcome] = executor.run([job], Listener())
    assert (outcome.exit_code, outcome.detail) == (0, None)

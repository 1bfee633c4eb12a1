"""Everything of ours killed at once: nobody is left to end what the program had started, so a resume does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from command_line import CommandLine
from processes import carrying, kill, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
DAEMONISE = Path(__file__).parent.parent / "programs" / "daemonise.py"
# The first launch leaves a child and a daemon, and stays; later ones are done at once.
PROGRAM = f"""
import os, subprocess, sys, time
if not os.path.exists("left"):
    subprocess.Popen(["sleep", "300"])
    subprocess.run([sys.executable, {str(DAEMONISE)!r}, "daemon"])
    open("left", "w").close()
    time.sleep(300)
print("speed=1")
"""


@pytest.fixture
def marker() -> Iterator[str]:
    name = f"TEST_MARKER={os.getpid()}-orphans"
    yield name
    kill(*carrying(name))


def kill_all_at_once(main: subprocess.Popen[str]) -> None:
    """First stopped, so that none of them can do anything about the death of another."""
    chain = [psutil.Process(main.pid)]
    for _ in range(2):
        chain += chain[-1].children()
    for process in chain:
        process.send_signal(signal.SIGSTOP)
    for process in chain:
        process.kill()
    main.communicate()


def begun_and_killed(bw: CommandLine, marker: str) -> list[int]:
    """A run of which only orphans are left: their pids."""
    name, _, value = marker.partition("=")
    main = subprocess.Popen(
        bw.argv("run", "--repeat", "2", "--metric", "speed", "--", sys.executable, "-c", PROGRAM),
        cwd=bw.cwd,
        env={**bw.env, name: value},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert wait_for((bw.cwd / "left").exists)
    kill_all_at_once(main)
    assert wait_for(lambda: len(carrying(marker)) == 2), "the program dies with its supervisor; its children stay"
    return carrying(marker)


def test_a_resume_ends_them_before_it_measures_and_says_so(bw: CommandLine, marker: str) -> None:
    begun_and_killed(bw, marker)
    other = subprocess.Popen(["sleep", "300"])
    try:
        done = bw("run", "--resume", "--repeat", "2", "--metric", "speed", "--", sys.executable, "-c", PROGRAM)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert carrying(marker) == []
    assert "its leftover processes were ended before measuring: " in done.stderr
    assert "sleep (" in done.stderr
    assert "its leftover processes were ended" in " ".join(done.stdout.split())
    assert "its leftover processes were ended" in bw("report", "last", "--format", "markdown").stdout


def test_another_run_leaves_them_alone_and_says_so(bw: CommandLine, marker: str) -> None:
    orphans = begun_and_killed(bw, marker)
    done = bw("run", "--", "true")
    assert sorted(carrying(marker)) == sorted(orphans)
    assert "another benchwright run was killed and its processes are still running" in " ".join(done.stdout.split())

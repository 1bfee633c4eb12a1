"""Ctrl-C, SIGTERM and kill -9 at any moment: nothing that completed is lost or repeated, and no process is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import CommandLine
from processes import carrying, wait_for

from benchwright.record import is_complete, read_events

PY = sys.executable
# Each launch leaves a line with its own number, so that a repetition would show.
COUNTED = "import os, time; open('launches', 'a').write('x'); time.sleep(0.4); print('speed=1')"
# From the given launch on, each waits for the file `go`.
WAITS = """
import os, time
open("launches", "a").write("x")
while len(open("launches").read()) >= {which} and not os.path.exists("go"):
    time.sleep(0.02)
print("speed=1")
"""


def started(bw: CommandLine, *args: str, marker: str) -> subprocess.Popen[str]:
    env = {**bw.env, "TEST_MARKER": marker}
    return subprocess.Popen(
        bw.argv(*args),
        cwd=bw.cwd,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def launches(bw: CommandLine) -> int:
    path = bw.cwd / "launches"
    return len(path.read_text()) if path.exists() else 0


def complete(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("*.data") if "interrupted" not in p.name and is_complete(p))


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupted_run_is_resumable_and_leaves_no_process(bw: CommandLine, number: signal.Signals) -> None:
    args = ("run", "--repeat", "3", "--metric", "speed", "--", PY, "-c", WAITS.format(which=2))
    process = started(bw, *args, marker=f"{os.getpid()}-int")
    assert wait_for(lambda: launches(bw) >= 2)
    os.kill(process.pid, number)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "--resume=" in said
    assert wait_for(lambda: not carrying(f"TEST_MARKER={os.getpid()}-int"))
    folder = bw.last_run()
    done_before = complete(folder)
    assert len(done_before) == 1
    before = {name: (folder / name).read_bytes() for name in done_before}

    (bw.cwd / "go").touch()
    body = bw.json("run", "--resume", *args[1:])
    assert body["id"] == folder.name
    assert body["status"] == "ok"
    assert len(complete(folder)) == 3
    assert {name: (folder / name).read_bytes() for name in done_before} == before
    assert len(list((bw.base / "runs").iterdir())) == 1


def test_resuming_something_else_is_refused_with_the_difference(bw: CommandLine) -> None:
    command = (PY, "-c", WAITS.format(which=1))
    process = started(bw, "run", "--repeat", "3", "--", *command, marker="differs")
    assert wait_for(lambda: launches(bw) >= 1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    done = bw("run", "--resume", "--repeat", "5", "--", *command, code=2)
    assert "repeat was 3, is 5" in done.stderr


def test_there_is_nothing_to_resume_after_a_whole_run(bw: CommandLine) -> None:
    bw("run", "--", "true")
    assert "no unfinished run" in bw("run", "--resume", "--", "true", code=2).stderr


VICTIMS = ("benchwright", "agent", "supervisor", "program")
QUICK = {("benchwright", 0), ("supervisor", 1)}
KILLS = [
    pytest.param(victim, seed, marks=() if (victim, seed) in QUICK else pytest.mark.long)
    for victim in VICTIMS
    for seed in range(4)
]


@pytest.mark.parametrize(("victim", "seed"), KILLS)
def test_kill_9_at_a_random_moment_then_resume(bw: CommandLine, victim: str, seed: int) -> None:
    marker = f"{os.getpid()}-{victim}-{seed}"
    args = ("run", "--repeat", "3", "--metric", "speed", "--", PY, "-c", COUNTED)
    process = started(bw, *args, marker=marker)
    assert wait_for(lambda: launches(bw) >= 1)
    time.sleep(random.Random(seed).uniform(0, 0.6))
    kill_9(victim, process.pid)
    process.communicate()
    assert wait_for(lambda: not carrying(f"TEST_MARKER={marker}")), "a process was left behind"

    folder = bw.last_run()
    done_before = {name: (folder / name).read_bytes() for name in complete(folder)}
    for path in folder.glob("*.data"):
        events = [e["event"] for e in read_events(path)]
        assert events.count("unreadable") <= 1, "only the very last line may be cut off"
    done = bw("run", f"--resume={folder.name}", code=None)
    body = json.loads((folder / "run.json").read_text())
    assert done.returncode == {"ok": 0, "failed": 1}[body["status"]]
    assert len(body["results"][0]["launches"]) == 3
    for launch in body["results"][0]["launches"]:
        values = sum(x["measured"] for x in launch["samples"] if x["metric"] == "speed")
        assert values == 1 or launch["status"] == "failed", "no success without its data, nor with another launch's"
    for name, content in done_before.items():
        assert (folder / name).read_bytes() == content, "what had completed was repeated"
    if victim == "benchwright":
        assert body["status"] == "ok"


def kill_9(victim: str, pid: int) -> None:
    """Kills one link of the chain main → agent → supervisor → program, if it lives."""
    chain = [pid]
    for _ in range({"benchwright": 0, "agent": 1, "supervisor": 2, "program": 3}[victim]):
        children = child_pids(chain[-1])
        if not children:
            return
        chain.append(children[0])
    try:
        os.kill(chain[-1], signal.SIGKILL)
    except ProcessLookupError:
        pass


def child_pids(pid: int) -> list[int]:
    try:
        return [int(p) for task in Path(f"/proc/{pid}/task").iterdir() for p in (task / "children").read_text().split()]
    except OSError:
        return []


def test_two_runs_at_once_on_one_folder_are_refused(bw: CommandLine) -> None:
    process = started(bw, "run", "--repeat", "2", "--", PY, "-c", "import time; time.sleep(300)", marker="two")
    assert wait_for(lambda: (bw.base / "runs").exists() and any((bw.base / "runs").glob("*/*.data")))
    done = bw("run", f"--resume={bw.last_run().name}", code=3)
    assert "another benchwright" in done.stderr
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


def test_two_runs_of_the_same_command_at_once_get_two_folders(bw: CommandLine) -> None:
    both_run = """
import os, time
open("launches", "a").write("x")
while len(open("launches").read()) < 2:
    time.sleep(0.02)
"""
    other = started(bw, "run", "--", PY, "-c", both_run, marker="both")
    assert wait_for(lambda: launches(bw) == 1)
    bw("run", "--", PY, "-c", both_run)
    other.communicate()
    assert other.returncode == 0
    assert len(list((bw.base / "runs").iterdir())) == 2

"""Jobs that start up while another is measured, and wait for their turn."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import job as job_in
from builders import machine

from benchwright.core.job import Job, JobTurn
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor
from benchwright.executors.observer import usable_cores
from benchwright.plan.starts import MOST_AHEAD

PROGRAM = """
import json, os, sys, threading, time
from benchmodels.measure.turn import Turn
from benchmodels.reports import Reports

def cores():
    return sorted({core for each in os.listdir("/proc/self/task") for core in os.sched_getaffinity(int(each))})

def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.005)
        times["worked"].append(time.monotonic())

threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
times = {"started": time.monotonic(), "worked": [], "cores": [cores()]}
turn = Turn()
if sys.argv[1] == "slow":
    work(0.3)
while sys.argv[1] == "late" and not os.path.exists(sys.argv[2].replace("0.json", "1.json")):
    time.sleep(0.01)
turn.wait(Reports())
times["turn"] = time.monotonic()
times["cores"].append(cores())
with turn.quiet():
    times["quiet"] = [time.monotonic()]
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), 9)
    time.sleep(2.0 if sys.argv[1] == "slow" else 0.4)
    times["quiet"].append(time.monotonic())
times["passed_on"] = time.monotonic()
if sys.argv[1] != "silent":
    turn.pass_on()
times["cores"].append(cores())
work(0.3)
times["ended"] = time.monotonic()
with open(sys.argv[2], "w") as file:
    json.dump(times, file)
"""


def jobs_in(folder: Path, *hows: str, measured: tuple[int, ...] | None = None, **fields: Any) -> list[Job]:
    (folder / "turns").mkdir()
    (folder / "program.py").write_text(PROGRAM)
    words = [sys.executable if how != "missing" else "no-such-command-anywhere" for how in hows]
    return [
        job_in(
            *(word, str(folder / "program.py"), how, str(folder / f"{place}.json")),
            folder=folder,
            id=f"job{place}",
            turn=JobTurn(folder=str(folder / "turns"), place=place, cores=measured),
            **fields,
        )
        for place, (word, how) in enumerate(zip(words, hows, strict=True))
    ]


def times_of(folder: Path, place: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{place}.json").read_text())
    return found


def test_they_start_early_are_measured_one_by_one_and_none_waits_for_a_dead_one(tmp_path):
    hows = ("slow", "fine", "fine", "killed", "fine", "missing", "silent", "fine")
    with LocalExecutor() as executor:
        outcomes = executor.run(jobs_in(tmp_path, *hows), Listener())
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 0, None, 0, None, 0, 0]
    made = [(how, times_of(tmp_path, place)) for place, how in enumerate(hows) if how not in ("killed", "missing")]
    made.sort(key=lambda each: float(each[1]["turn"]))
    for (how, before), (_, after) in pairwise(made):  # the silent one did not pass its turn on: it ended
        assert before["ended" if how == "silent" else "passed_on"] <= after["turn"]
    assert any(after["started"] < before["passed_on"] for (_, before), (_, after) in pairwise(made))
    for moment in (times["started"] for _, times in made):
        assert sum(times["started"] <= moment < times["ended"] for _, times in made) <= MOST_AHEAD


def test_nobody_waits_for_one_that_takes_long_to_start_up(tmp_path):
    with LocalExecutor() as executor:
        outcomes = executor.run(jobs_in(tmp_path, "late", "fine", timeout_s=300.0), Listener())
    assert [outcome.exit_code for outcome in outcomes] == [0, 0]
    assert times_of(tmp_path, 1)["turn"] < times_of(tmp_path, 0)["turn"]


def test_those_not_started_yet_are_not_started_after_a_stop(tmp_path):
    started: list[str] = []

    class Stopping(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            started.append(job_id)
            threading.Timer(0.0, executor.stop).start()

    with LocalExecutor() as executor:
        outcomes = executor.run(jobs_in(tmp_path, *["fine"] * 8), Stopping())
    assert all(outcome.stopped or outcome.exit_code == 0 for outcome in outcomes)
    assert [outcome.stopped for outcome in outcomes[MOST_AHEAD:]] == [True, True, True]
    assert not {"job5", "job6", "job7"} & set(started)


def test_whoever_starts_up_or_is_checked_is_held_back_while_another_is_measured(tmp_path):
    """And that is no pause of the program, nor does it count against its time limit."""
    with LocalExecutor() as executor:
        outcomes = executor.run(jobs_in(tmp_path, *["slow"] * 3, timeout_s=5.0), Listener())
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 0]
    made = [times_of(tmp_path, place) for place in range(3)]
    for measured in made:
        began, ended = measured["quiet"]
        for moments in (times["worked"] for times in made if times is not measured):
            assert not [moment for moment in moments if began + 1.0 < moment < ended]
    for place in range(3):
        assert '"pause"' not in (tmp_path / f"job{place}.data").read_text()
    lasted = max(times["ended"] - times["started"] for times in made)
    assert lasted > 5.0  # 2.6 s of its own; the others' turns made it longer than its limit


def test_one_that_is_killed_while_it_is_measured_holds_nobody_back(tmp_path):
    with LocalExecutor() as executor:
        outcomes = executor.run(jobs_in(tmp_path, "killed", "slow", timeout_s=300.0), Listener())
    assert [outcome.exit_code for outcome in outcomes] == [None, 0]


def test_a_mark_left_by_a_dead_process_holds_nobody_back(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    jobs = jobs_in(tmp_path, "fine", timeout_s=300.0)
    (tmp_path / "turns" / "quiet-7").write_text(str(gone.pid))
    with LocalExecutor() as executor:
        [outcome] = executor.run(jobs, Listener())
    assert outcome.exit_code == 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_the_one_that_is_measured_has_cores_of_its_own(tmp_path):
    measured, aside = sorted(os.sched_getaffinity(0))[:2]
    [job] = jobs_in(tmp_path, "fine", measured=(measured,), cores=(aside,))
    with LocalExecutor() as executor:
        executor.run([job], Listener())
    assert times_of(tmp_path, 0)["cores"] == [[aside], [measured], [aside]]
    start = next(json.loads(line) for line in Path(job.stream).read_text().splitlines() if '"start"' in line)
    assert start["cores"] == [measured]


@pytest.mark.parametrize("first", [True, False])
def test_the_first_one_waits_for_nobody(tmp_path: Path, first: bool) -> None:
    from benchmodels.measure.turn import Turn
    from benchmodels.reports import Reports

    given = {"turn": {"folder": str(tmp_path), "place": 0}} if first else {}
    turn = Turn({"BENCHPROBE_CONFIG": json.dumps({"stream": "x", **given})})
    turn.wait(Reports())
    assert _is_taken(tmp_path) == first
    turn.pass_on()
    assert not _is_taken(tmp_path)
    turn.pass_on()  # of nothing


def _is_taken(folder: Path) -> bool:
    with (folder / "turn").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_threads_of_a_core_are_in_the_same_half(monkeypatch):
    """Numbered as on most machines with two sockets or an Intel processor: 0 and 4 are threads of one core."""
    monkeypatch.setattr("benchwright.executors.observer.is_this_machine", lambda machine: True)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    here = machine()
    siblings = {f"cpu{n}": f"{n % 4},{n % 4 + 4}\n" for n in range(8)}
    monkeypatch.setattr("benchwright.executors.observer.read_text", lambda path: siblings.get(path.split("/")[5]))
    assert usable_cores(here) == [0, 4, 1, 5, 2, 6, 3, 7]
    siblings.clear()
    assert usable_cores(here) == list(range(8))

"""Jobs that start up while another is measured, and wait for their turn."""

from __future__ import annotations

import json
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

PROGRAM = """
import json, os, sys, time
from benchmodels.measure.turn import Turn
from benchmodels.reports import Reports

times = {"started": time.monotonic()}
turn = Turn()
turn.wait(Reports())
times["turn"] = time.monotonic()
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
time.sleep(0.3)
times["passed_on"] = time.monotonic()
if sys.argv[1] != "silent":
    turn.pass_on()
time.sleep(1.0 if sys.argv[1] == "slow" else 0.2)
times["ended"] = time.monotonic()
with open(sys.argv[2], "w") as file:
    json.dump(times, file)
"""


def jobs_in(folder: Path, *hows: str) -> list[Job]:
    (folder / "turns").mkdir()
    (folder / "program.py").write_text(PROGRAM)
    words = [sys.executable if how != "missing" else "no-such-command-anywhere" for how in hows]
    return [
        job_in(
            *(word, str(folder / "program.py"), how, str(folder / f"{place}.json")),
            folder=folder,
            id=f"job{place}",
            turn=JobTurn(folder=str(folder / "turns"), place=place),
        )
        for place, (word, how) in enumerate(zip(words, hows, strict=True))
    ]


def times_of(folder: Path, place: int) -> dict[str, float]:
    found: dict[str, float] = json.loads((folder / f"{place}.json").read_text())
    return found


def test_they_start_early_are_measured_one_by_one_and_none_waits_for_a_dead_one(tmp_path):
    hows = ("slow", "fine", "fine", "killed", "fine", "missing", "silent", "fine")
    with LocalExecutor() as executor:
        outcomes = executor.run(jobs_in(tmp_path, *hows), Listener())
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 0, None, 0, None, 0, 0]
    made = [times_of(tmp_path, place) for place, how in enumerate(hows) if how not in ("killed", "missing")]
    for before, after in pairwise(made):
        assert before["passed_on"] <= after["turn"]
    assert made[1]["started"] < made[0]["passed_on"]
    for moment in (times["started"] for times in made):
        assert sum(times["started"] <= moment < times["ended"] for times in made) <= 3
    for earlier, after in zip(made, made[2:], strict=False):  # those with the same half of the cores
        assert earlier["ended"] <= after["turn"]
    silent = made[4]  # it did not pass its turn on: its supervisor did, when it had ended
    assert made[5]["turn"] >= silent["ended"]


def test_those_not_started_yet_are_not_started_after_a_stop(tmp_path):
    started: list[str] = []

    class Stopping(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            started.append(job_id)
            threading.Timer(0.0, executor.stop).start()

    with LocalExecutor() as executor:
        outcomes = executor.run(jobs_in(tmp_path, *["fine"] * 6), Stopping())
    assert all(outcome.stopped or outcome.exit_code == 0 for outcome in outcomes)
    assert [outcome.stopped for outcome in outcomes[3:]] == [True, True, True]
    assert not {"job3", "job4", "job5"} & set(started)


@pytest.mark.parametrize("given", [{}, {"turn": {"folder": "/nowhere", "place": 0}}])
def test_the_first_one_waits_for_nobody(given: dict[str, Any]) -> None:
    from benchmodels.measure.turn import Turn
    from benchmodels.reports import Reports

    Turn({"BENCHPROBE_CONFIG": json.dumps({"stream": "x", **given})}).wait(Reports())


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

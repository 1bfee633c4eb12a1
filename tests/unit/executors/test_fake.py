from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchwright.core.job import Job, Outcome
from benchwright.executors.base import Listener
from benchwright.executors.fake import FakeExecutor


def make_job(folder: Path, name: str) -> Job:
    return Job(
        id=name, benchmark=name, argv=("x",), cwd="/", stream=f"{folder}/{name}.data", log=f"{folder}/{name}.log"
    )


def test_samples_become_the_measured_steps_of_a_loop(tmp_path):
    executor = FakeExecutor({"resnet": [0.10, 0.11]})
    [outcome] = executor.run([make_job(tmp_path, "resnet")], Listener())
    assert outcome.duration_s == pytest.approx(0.21)
    lines = [json.loads(line) for line in (tmp_path / "resnet.data").read_text().splitlines()]
    [steps] = [event for event in lines if event["event"] == "steps"]
    assert (steps["step_ns"], steps["phase"]) == ([100_000_000, 110_000_000], "measured")
    [stop] = [event for event in lines if event["event"] == "stop"]
    assert stop["steps"] == 2


def test_it_remembers_what_ran_and_in_which_order(tmp_path):
    executor = FakeExecutor({"a": [1], "b": [1]}, outcomes={"c": Outcome(job="", timed_out=True)})
    executor.run([make_job(tmp_path, "b")], Listener())
    [c, a] = executor.run([make_job(tmp_path, "c"), make_job(tmp_path, "a")], Listener())
    assert executor.ran == ["b", "c", "a"]
    assert (c.job, c.timed_out, a.exit_code) == ("c", True, 0)

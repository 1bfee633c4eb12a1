from __future__ import annotations

import pytest
from builders import events, job

from benchwright.core.job import Outcome
from benchwright.executors.base import Listener
from benchwright.executors.fake import FakeExecutor


def test_samples_become_the_measured_steps_of_a_loop(tmp_path):
    executor = FakeExecutor({"resnet": [0.10, 0.11]})
    [outcome] = executor.run([job(folder=tmp_path, id="resnet")], Listener())
    assert outcome.duration_s == pytest.approx(0.21)
    [steps] = events(tmp_path / "resnet.data", "steps")
    assert (steps["step_ns"], steps["phase"]) == ([100_000_000, 110_000_000], "measured")
    [stop] = events(tmp_path / "resnet.data", "stop")
    assert stop["steps"] == 2


def test_it_remembers_what_ran_and_in_which_order(tmp_path):
    executor = FakeExecutor({"a": [1], "b": [1]}, outcomes={"c": Outcome(job="", timed_out=True)})
    executor.run([job(folder=tmp_path, id="b")], Listener())
    [c, a] = executor.run([job(folder=tmp_path, id="c"), job(folder=tmp_path, id="a")], Listener())
    assert executor.ran == ["b", "c", "a"]
    assert (c.job, c.timed_out, a.exit_code) == ("c", True, 0)

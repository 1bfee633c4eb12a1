"""Launches that are recorded as soon as they have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from builders import job

from benchwright.core.job import Job, JobTurn, Outcome
from benchwright.executors.base import Listener
from benchwright.runner.recorder import ImmediateRecorder


def test_a_launch_with_a_turn_is_recorded_when_it_ends_and_any_other_by_whoever_started_it():
    heard: list[str] = []

    class Hearing(Listener):
        def on_finished(self, outcome: Outcome) -> None:
            heard.append(outcome.job)

    def record(jobs: Sequence[Job], outcomes: Mapping[str, Outcome]) -> None:
        heard.append(f"recorded {jobs[0].id}: {outcomes[jobs[0].id].exit_code}")

    launches = [(job(id="a", turn=JobTurn(folder="/f")),), (job(id="b"), job(id="c"))]
    listener = ImmediateRecorder(launches, Hearing(), record)
    for name in ("b", "a", "c"):
        listener.on_finished(Outcome(job=name, exit_code=3))
    assert heard == ["b", "a", "recorded a: 3", "c"]
    assert listener.recorded == {"a"}

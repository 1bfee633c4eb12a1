"""Launches that are started together and do not wait for each other's ends: each is recorded as soon as it has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchwright.core.job import Job, Outcome
from benchwright.executors.base import Listener

Recorder = Callable[[Sequence[Job], Mapping[str, Outcome]], None]


class AsTheyEnd(Listener):
    """Passes on what it hears. `record` is called once for each launch that has a turn; the others are left to the caller."""

    def __init__(self, launches: Sequence[Sequence[Job]], listener: Listener, record: Recorder) -> None:
        self._listener = listener
        self._launches = {jobs[0].id: jobs for jobs in launches if jobs[0].turn is not None}
        self._record = record
        self.recorded: set[str] = set()  # by their first job

    def on_started(self, job_id: str, pid: int) -> None:
        self._listener.on_started(job_id, pid)

    def on_output(self, job_id: str, text: str) -> None:
        self._listener.on_output(job_id, text)

    def on_progress(self, job_id: str, values: Mapping[str, object]) -> None:
        self._listener.on_progress(job_id, values)

    def on_finished(self, outcome: Outcome) -> None:
        self._listener.on_finished(outcome)
        if outcome.job in self._launches:
            self.recorded.add(outcome.job)
            self._record(self._launches[outcome.job], {outcome.job: outcome})

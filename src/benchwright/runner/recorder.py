"""Launches that are started together and do not wait for each other's ends: each is recorded as soon as it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, Outcome
from benchwright.core.run import Launch, Run
from benchwright.core.status import Reason, Status
from benchwright.executors.base import Allocating, Listener
from benchwright.executors.observer import Observer
from benchwright.kinds.registry import kind_of
from benchwright.record import append_events, record_stream
from benchwright.results.after_run import written_body
from benchwright.runs.checksums import Checksums
from benchwright.runs.run_folder import DiskTrouble, RunFolder, RunState

Recorder = Callable[[Sequence[Job], Mapping[str, Outcome]], None]


class ImmediateRecorder(Listener):
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


# Turns jobs that have ended into launches, from their streams, the files their programs left, and what the executor saw.


def add_examined(jobs: Sequence[Job], outcomes: Iterable[Outcome], benchmarks: Mapping[str, Benchmark]) -> None:
    """Adds what kinds find in the files that programs left, as events. Only of jobs that ended well. A stream that cannot be written lacks them, and its launch is judged so."""
    ended_well = {outcome.job for outcome in outcomes if outcome.exit_code == 0}
    for job in jobs:
        if job.id in ended_well:
            benchmark = benchmarks[job.benchmark]
            append_events(job.stream, kind_of(benchmark).examined(benchmark, job))


def add_neighbours(jobs: Sequence[Job], executor: Allocating) -> None:
    """Adds jobs of others that a scheduler ran on the same nodes."""
    for job in jobs:
        if others := executor.others_on(job):
            append_events(job.stream, [{"event": "shared", "jobs": list(others)}])


def recorded(job: Job, outcome: Outcome | None, benchmarks: Mapping[str, Benchmark], checksums: Checksums) -> Launch:
    """From the stream, whose checksum is kept from now on; the executor knows more only where that has no end."""
    checksums.add(job.stream)
    launch = record_stream(job.stream, job, benchmarks[job.benchmark], kind_of, checksums.of(job.stream))
    if launch.reason is Reason.STOPPED and outcome is not None and not outcome.stopped and outcome.detail:
        # Nobody asked it to: the connection to its node was cut, and its agent ended it.
        return replace(launch, status=Status.FAILED, reason=Reason.AGENT_LOST, detail=outcome.detail)
    if launch.reason is not Reason.AGENT_LOST or outcome is None:
        return launch
    if outcome.stopped:  # before it began, or so fast that it could not write how it ended
        detail = "benchwright was asked to stop"
        return replace(launch, status=Status.INTERRUPTED, reason=Reason.STOPPED, detail=detail)
    reason = Reason.DISK_FULL if outcome.disk_full else launch.reason
    return replace(launch, reason=reason, detail=outcome.detail or launch.detail)


# run.json while a run is measured: written now and then, so that it is seen as it grows and costs little however long it gets.


_EVERY_S = 2.0  # at most that often,
_SHARE = 0.02  # and for at most this share of the time: the file of a thousand models takes seconds


class RunWriter:
    """That of one run."""

    def __init__(self, folder: RunFolder, observer: Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._observer = observer
        self._clock = clock
        self._next = 0.0
        self._in_trouble = False

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next

    def write(self, assembled: Callable[[], Run], state: RunState) -> Run:
        """Returns what it wrote. A full disk is said once and costs nothing else: the streams are the truth."""
        began = self._clock()
        run = assembled()
        try:
            self._folder.write_run(written_body(run), state=state)
        except DiskTrouble as error:
            if not self._in_trouble:
                self._observer.on_trouble(str(error))
            self._in_trouble = True
        ended = self._clock()
        self._next = ended + max(_EVERY_S, (ended - began) / _SHARE)
        return run

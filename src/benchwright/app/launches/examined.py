"""Turns jobs that have ended into launches, from their streams, the files their programs left, and what the executor saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, Outcome
from benchwright.core.run import Launch
from benchwright.core.status import Reason, Status
from benchwright.kinds.registry import kind_of
from benchwright.record import append_events, record_stream
from benchwright.runs.checksums import Checksums


def add_examined(jobs: Sequence[Job], outcomes: Iterable[Outcome], benchmarks: Mapping[str, Benchmark]) -> None:
    """Adds what kinds find in the files that programs left, as events. Only of jobs that ended well. A stream that cannot be written lacks them, and its launch is judged so."""
    ended_well = {outcome.job for outcome in outcomes if outcome.exit_code == 0}
    for job in jobs:
        if job.id in ended_well:
            benchmark = benchmarks[job.benchmark]
            append_events(job.stream, kind_of(benchmark).examined(benchmark, job))


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

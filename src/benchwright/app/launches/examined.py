"""What kinds find in the files that programs left, as events of their streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, Outcome
from benchwright.kinds.registry import kind_of
from benchwright.record import append_events


def add_examined(jobs: Sequence[Job], outcomes: Sequence[Outcome], benchmarks: Mapping[str, Benchmark]) -> None:
    """Of jobs that ended well. A stream that cannot be written lacks them, and its launch is judged so."""
    ended_well = {outcome.job for outcome in outcomes if outcome.exit_code == 0}
    for job in jobs:
        if job.id in ended_well:
            benchmark = benchmarks[job.benchmark]
            append_events(job.stream, kind_of(benchmark).examined(benchmark, job))

"""What a launch left behind: its outputs, against the golden ones of its test."""

from __future__ import annotations

import os

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job
from benchwright.kinds.spec.plan import LaunchFolders, outputs_of
from benchwright.kinds.spec.results.goldens import OutputPair, compared
from benchwright.kinds.spec.setup import paths_here
from benchwright.record.reading import Event


def examine(benchmark: Benchmark, job: Job) -> list[Event]:
    """An event for each golden output of a test that ran a program; runtimes compare theirs themselves."""
    test = benchmark.spec
    if test is None or not test.goldens or not test.commands:
        return []
    written = outputs_of(test, LaunchFolders.below(os.path.dirname(job.stream), test, job.id))
    goldens = paths_here(test, test.goldens)
    return compared([OutputPair(g.key, written[g.key], goldens.get(g.key)) for g in test.goldens], test.tolerance)

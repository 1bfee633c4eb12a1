"""The command of a benchmark, as one would type it."""

from __future__ import annotations

import shlex

from benchwright.domain.benchmark import Benchmark, Command
from benchwright.reporters.base import Report


def command_text(benchmark: Benchmark, report: Report) -> str:
    """Of a suite's benchmark that of its first process; where its plan is not known, the script and its words."""
    work = benchmark.workload
    if isinstance(work, Command):
        return work.argv[0] if work.shell and len(work.argv) == 1 else shlex.join(work.argv)
    planned = report.commands.get(benchmark.name)
    return shlex.join(planned or [word for word in (work.python, work.path) if word] + list(work.args))

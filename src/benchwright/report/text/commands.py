"""The command of a benchmark, as one would type it."""

from __future__ import annotations

import shlex

from benchwright.core.benchmark import Benchmark
from benchwright.core.secrets.redact import redact_text, redact_words
from benchwright.report.base import Report


def command_text(benchmark: Benchmark, report: Report) -> str:
    """Without secrets. Of a suite's benchmark that of its first process; where its plan is not known, the script and its words."""
    work = benchmark.workload
    if work.shell and len(work.words) == 1:
        return redact_text(work.words[0])
    return shlex.join(redact_words(report.commands.get(benchmark.name) or work.words))

"""The command of a benchmark, as one would type it."""

from __future__ import annotations

import shlex

from benchwright.core.benchmark import Benchmark, Command, Script
from benchwright.core.model import Model, ModelScript
from benchwright.core.secrets.redact import redact_words
from benchwright.core.secrets.redacted import shown_words
from benchwright.report.base import Report


def command_text(benchmark: Benchmark, report: Report) -> str:
    """Without secrets. Of a suite's benchmark that of its first process; where its plan is not known, the script and its words.

    Of a model it is the script that calls it: that is how it is made again.
    """
    work = benchmark.workload
    if isinstance(work, Command):
        return shown_words(work)[0] if work.shell and len(work.argv) == 1 else shlex.join(shown_words(work))
    planned = report.commands.get(benchmark.name)
    return shlex.join(redact_words(planned or words_of(work)))


def words_of(work: Script | ModelScript | Model) -> list[str]:
    """The script or model file, with the interpreter before it and its words after it."""
    path = (work.script or work.file) if isinstance(work, Model) else work.path
    python = "" if isinstance(work, Model) and work.script is None else work.python
    return [word for word in (python, path) if word] + list(work.args)

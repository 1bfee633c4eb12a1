"""The command of a benchmark, as one would type it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import SHELL_LINE
from benchwright.core.secrets import redact_text, redact_words
from benchwright.report.base import Report

_STEPS = "set -e\n"


def command_text(benchmark: Benchmark, report: Report) -> str:
    """Without secrets: that of its first process; where its plan is not known, its words as they were written."""
    return command_line(report.commands.get(benchmark.name) or words_of(benchmark))


def words_of(benchmark: Benchmark) -> tuple[str, ...]:
    """The words of its command as they were written; what a shell runs is `/bin/sh -c TEXT`."""
    work = benchmark.workload
    return (*SHELL_LINE, work.words[0]) if work.shell and len(work.words) == 1 else tuple(work.words)


def command_line(words: Sequence[str]) -> str:
    """As one would type it, in one line, without secrets."""
    if tuple(words[:2]) != SHELL_LINE or len(words) != 3:
        return shlex.join(redact_words(words))
    text = redact_text(words[2])
    if not text.startswith(_STEPS):
        return text
    # The steps of a test, one in each line or in parentheses; the first that fails ends the test.
    return text.removeprefix(_STEPS).strip().replace("(\n", "(").replace("\n)", ")").replace("\n", " && ")

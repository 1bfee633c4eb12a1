"""The tasks of a file as `benchwright resolve` prints them: with the keys of the file, defaults applied."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Sequence
from typing import Any

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.secrets import redact_text
from benchwright.kinds.tasks.read import read_tasks


def resolved_tasks(
    path: str, *, select: Sequence[str] = (), exclude: Sequence[str] = ()
) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Entries by name, and warnings: tasks that cannot run, and what was noted as the others were read.

    `select` and `exclude` are names or patterns; InvalidInput for one that no task has.
    """
    tasks = read_tasks(path)
    names = [task.name for task in tasks]
    for word in (*select, *exclude):
        if not fnmatch.filter(names, word):
            remedy = did_you_mean(word, names) or f"see the names with: benchwright resolve {path}"
            raise InvalidInput(f"no task is called '{word}'", where=path, remedy=remedy)
    meant = [t for t in tasks if (not select or _is_one_of(t, select)) and not _is_one_of(t, exclude)]
    warnings = [note for task in meant for note in ([task.fault] if task.fault is not None else task.notes)]
    return {task.name: _entry(task) for task in meant if task.fault is None}, tuple(warnings)


def _is_one_of(task: Benchmark, words: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(task.name, word) for word in words)


def _entry(task: Benchmark) -> dict[str, Any]:
    """One key for each of the file, then where and how the command runs."""
    work = task.workload
    line = work.words[0] if work.shell else shlex.join(work.words)
    return {
        "patterns": [metric.pattern for metric in task.metrics],
        "metrics": [metric.name for metric in task.metrics],
        "compute_method": [metric.aggregate for metric in task.metrics],
        "command_to_execute": redact_text(line),
        "num_gpus": task.placement.needs_devices,
        "cwd": work.cwd,
        "shell": work.shell,
        "definition": task.source,
    }

"""What one process of a benchmark is started with."""

from __future__ import annotations

import msgspec

from benchwright.core.benchmark import Benchmark, Command, Script


class JobCommand(msgspec.Struct, frozen=True):
    """The part of a Job that says what is executed, and with which environment and files."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str | None]
    path: tuple[str, ...] = ()
    files: dict[str, str] = {}
    data_file: str | None = None
    folders: tuple[str, ...] = ()


def plain_command(benchmark: Benchmark) -> JobCommand:
    """Of a command, a task or a script: as it is written; for a shell command its one line."""
    workload = benchmark.workload
    if isinstance(workload, Command):
        return JobCommand(workload.argv, workload.cwd, benchmark.env)
    assert isinstance(workload, Script)
    return JobCommand((workload.python, workload.path, *workload.args), workload.cwd, benchmark.env)

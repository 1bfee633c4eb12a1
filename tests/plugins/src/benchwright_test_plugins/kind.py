"""A list of commands: a file `*.bench` with a line `name: command words` for each."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.kinds.base import Kind
from benchwright.kinds.metric_option import metrics_of
from benchwright.options.table import Options


class BenchListKind(Kind):
    name = "bench-list"

    def recognises(self, target: str) -> bool:
        return target.endswith(".bench") and Path(target).is_file()

    def read(self, target: str, options: Options) -> list[Benchmark]:
        lines = Path(target).read_text(encoding="utf-8", errors="replace").splitlines()
        numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]
        return [self._benchmark(target, number, line, options) for number, line in numbered]

    def option_sorts(self, benchmark: Benchmark) -> tuple[str, ...]:
        return ("command",)  # --metric and other options of commands apply to it

    def alternates(self, benchmark: Benchmark) -> bool:
        return True  # the commands of a list are compared with each other

    def _benchmark(self, target: str, number: int, line: str, options: Options) -> Benchmark:
        name, _, command = line.partition(":")
        try:
            argv = shlex.split(command)
        except ValueError:  # a quote that is not closed
            argv = []
        if not name.strip() or not argv:
            raise InvalidInput(
                "this line names no command", where=target, line=number, remedy="write NAME: COMMAND", text=line
            )
        workload = Command(argv=tuple(argv), cwd=options.cwd or os.getcwd())
        return Benchmark(
            name=name.strip(), workload=workload, kind=self.name, source=target, metrics=metrics_of(options)
        )

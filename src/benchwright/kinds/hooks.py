"""`--setup`, `--prepare` and `--cleanup`: commands that users have run around launches, as part of the benchmarks."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import Benchmark, Command, Hooks
from benchwright.core.errors import InvalidInput
from benchwright.kinds.command_words import command_from_line
from benchwright.kinds.sweep import with_values
from benchwright.options.table import Options


def with_hooks(benchmarks: Sequence[Benchmark], options: Options) -> list[Benchmark]:
    """The same with their hooks, in which `{NAME}` stands for the benchmark's own parameter of that name."""
    setup, cleanup = (_command(line, option, options) for line, option in _lines(options))
    prepares = [_command(line, "--prepare", options) for line in options.prepare]
    if len(prepares) > 1 and len(prepares) != len(benchmarks):
        raise InvalidInput(
            f"there are {len(prepares)} for {len(benchmarks)} benchmark{'' if len(benchmarks) == 1 else 's'}",
            where="--prepare",
            remedy="give one for all, or one for each",
        )
    each = prepares if len(prepares) > 1 else (prepares or [None]) * len(benchmarks)
    return [_hooked(b, setup, prepare, cleanup) for b, prepare in zip(benchmarks, each, strict=True)]


def _lines(options: Options) -> tuple[tuple[str | None, str], tuple[str | None, str]]:
    return (options.setup, "--setup"), (options.cleanup, "--cleanup")


def _command(line: str | None, option: str, options: Options) -> Command | None:
    if line is None:
        return None

    def fail(what: str, position: int, remedy: str) -> InvalidInput:
        return InvalidInput(what, where=option, remedy=remedy, text=line)

    return command_from_line(line, cwd=options.cwd or os.getcwd(), shell=options.shell, fail=fail)


def _hooked(benchmark: Benchmark, setup: Command | None, prepare: Command | None, cleanup: Command | None) -> Benchmark:
    filled = [None if c is None else with_values(c, benchmark.parameters) for c in (setup, prepare, cleanup)]
    return msgspec.structs.replace(benchmark, hooks=Hooks(setup=filled[0], prepare=filled[1], cleanup=filled[2]))

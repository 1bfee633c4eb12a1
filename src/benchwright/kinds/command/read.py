"""A command given on the command line: after `--` as words, or with `-c` as one line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import MetricSpec
from benchwright.kinds.base import Kind, KindOptions
from benchwright.kinds.command_words import command_from_line, read_line

_INTERPRETER = re.compile(
    r"(?:python|pypy)[\d.]*|bash|sh|dash|zsh|node|perl|ruby|Rscript|julia|torchrun|accelerate|mpirun|srun|deepspeed"
)
_LAUNCHERS = ("torchrun", "accelerate", "mpirun", "srun", "deepspeed")
_OPTIONS_WITH_VALUE = {"-W", "-X"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class CommandKind(Kind):
    """A command is never recognised: it is given behind `--`, or with `-c`."""

    name = "command"

    def recognises(self, target: str) -> bool:
        return False

    def read(self, target: str, options: KindOptions) -> list[Benchmark]:
        """`target` is the command, as one line."""
        return [line_benchmark(target, cwd=options.cwd, metrics=options.metrics)]


def command_benchmark(
    argv: Sequence[str], *, name: str | None = None, cwd: str | None = None, metrics: Sequence[MetricSpec] = ()
) -> Benchmark:
    """The program with its arguments, as they came after `--`, run where the user is unless `cwd` says otherwise."""
    if not argv or not argv[0]:
        raise InvalidInput("no command given", where="--", remedy="write it after --, such as: -- python train.py")
    for word in argv:
        if "\0" in word:
            raise InvalidInput("a NUL byte in the command", where="--", remedy="remove it")
    return Benchmark(
        name=name or name_of(argv),
        workload=Command(argv=tuple(argv), cwd=cwd or os.getcwd()),
        source="command line",
        metrics=tuple(metrics),
    )


def line_benchmark(
    line: str,
    *,
    name: str | None = None,
    cwd: str | None = None,
    metrics: Sequence[MetricSpec] = (),
    shell: bool = False,
    where: str = "-c",
) -> Benchmark:
    """As `command_benchmark`, from one line: split into words, or kept whole for a shell if one is asked for."""

    def fail(what: str, position: int, remedy: str) -> InvalidInput:
        return InvalidInput(what, where=where, remedy=remedy, text=line)

    command = command_from_line(line, cwd=cwd or os.getcwd(), shell=shell, fail=fail)
    words = [word.text for word in read_line(line).words if not word.operator]
    while len(words) > 1 and _ASSIGNMENT.match(words[0]):  # what a shell sets for the command is not its name
        words.pop(0)
    return Benchmark(name=name or name_of(words), workload=command, source="command line", metrics=tuple(metrics))


def name_of(argv: Sequence[str]) -> str:
    """What to call a command: its script (`train.py`) or module behind an interpreter, else its program."""
    program = os.path.basename(argv[0]) or argv[0]
    if not _INTERPRETER.fullmatch(program):
        return program
    if program in _LAUNCHERS:  # their own options take values of any form, so the script is told by its ending
        script = next((word for word in argv[1:] if word.endswith(".py")), None)
        return os.path.basename(script) if script else program
    arguments = iter(argv[1:])
    for argument in arguments:
        if argument == "-m":
            return next(arguments, program)
        if argument == "-c":
            return program
        if argument in _OPTIONS_WITH_VALUE:
            next(arguments, None)
        elif not argument.startswith("-"):
            return os.path.basename(argument) or program
    return program

"""A command given on the command line: after `--` as words, or with `-c` as one line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import MetricSpec
from benchwright.kinds.base import Kind
from benchwright.kinds.command_words import command_from_line
from benchwright.kinds.function_profile import with_functions_profiled
from benchwright.kinds.metric_option import metrics_of
from benchwright.kinds.names import told_apart, words_of
from benchwright.kinds.sweep import Point, is_variable, named_point, sweep_points, variables, with_values
from benchwright.options.table import Options
from benchwright.runs.provenance.code_files import INTERPRETER

_LAUNCHERS = ("torchrun", "accelerate", "mpirun", "srun", "deepspeed")
_OPTIONS_WITH_VALUE = {"-W", "-X"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class CommandKind(Kind):
    """A command is never recognised: it is given behind `--`, or with `-c`."""

    name = "command"

    def ends_with_verdict(self, benchmark: Benchmark) -> bool:
        return True

    def profiled(self, benchmark: Benchmark, folder: str) -> Benchmark | None:
        work = benchmark.workload
        if not isinstance(work, Command) or work.shell:
            return None
        return with_functions_profiled(benchmark, work.argv, work.cwd, folder)

    def recognises(self, target: str) -> bool:
        return False

    def read(self, target: str, options: Options) -> list[Benchmark]:
        """`target` is the command, as one line."""
        return [line_benchmark(target, cwd=options.cwd, metrics=metrics_of(options))]


def read_commands(options: Options) -> list[Benchmark]:
    """Every command of the options, once for each value of the parameters it mentions; no two are called alike."""
    cwd, metrics, shell = options.cwd, metrics_of(options), options.shell
    found = [line_benchmark(line, cwd=cwd, metrics=metrics, shell=shell) for line in options.commands]
    if options.command and shell:
        # As with `sh -c`: one word is a line for the shell; several are joined as they would be typed.
        line = options.command[0] if len(options.command) == 1 else shlex.join(options.command)
        found.append(line_benchmark(line, cwd=cwd, metrics=metrics, shell=True))
    elif options.command:
        found.append(command_benchmark(options.command, cwd=cwd, metrics=metrics))
    points = sweep_points(options.params, options.sweep)
    if found and not options.targets:  # a parameter that no command mentions may be meant for a script
        _refuse_unused(found, points)
    return [filled for each in told_apart(found) for filled in _filled(each, points)]


def _refuse_unused(benchmarks: Sequence[Benchmark], points: Sequence[Point]) -> None:
    for name in points[0]:
        if not is_variable(name) and not any(_mentions(benchmark, name) for benchmark in benchmarks):
            placeholder = f"{{{name}}}"
            raise InvalidInput(
                f"no command has {placeholder} in it",
                where=f"--param {name}",
                remedy=f"write {placeholder} where the value belongs, such as: -c 'program --{name} {placeholder}'",
            )


def _mentions(benchmark: Benchmark, name: str) -> bool:
    return any(f"{{{name}}}" in word for word in benchmark.workload.words)


def _filled(benchmark: Benchmark, points: Iterable[Point]) -> Iterable[Benchmark]:
    """One for each combination of the parameters it mentions. A value stays one word, in a shell's line too."""
    command = benchmark.workload
    assert isinstance(command, Command)
    for point in {
        tuple((k, v) for k, v in point.items() if is_variable(k) or _mentions(benchmark, k)): None for point in points
    }:
        yield msgspec.structs.replace(
            benchmark,
            name=benchmark.name + named_point(dict(point)),
            workload=with_values(command, dict(point)),
            parameters=dict(point),
            env={**benchmark.env, **variables(dict(point))},
        )


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
    found = Benchmark(name=name or line, workload=command, source="command line", metrics=tuple(metrics))
    return found if name else msgspec.structs.replace(found, name=plain_name(found))


def plain_name(benchmark: Benchmark) -> str:
    """Name of a command by itself, whatever it is measured together with."""
    words = words_of(benchmark)
    while len(words) > 1 and _ASSIGNMENT.match(words[0]):  # what a shell sets for the command is not its name
        words.pop(0)
    return name_of(words)


def name_of(argv: Sequence[str]) -> str:
    """Name of a command: its script (`train.py`) or module behind an interpreter, else its program."""
    program = os.path.basename(argv[0]) or argv[0]
    if not INTERPRETER.fullmatch(program):
        return program
    if program in _LAUNCHERS:  # their own options take values of any form, so the script is recognised by its ending
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

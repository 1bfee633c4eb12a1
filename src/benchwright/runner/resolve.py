"""From what a user names to frozen Benchmarks."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec
from msgspec.structs import replace

from benchwright.analysis.checks.validation import validation_names
from benchwright.core.aggregates import workers_count
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.base import Resolved
from benchwright.kinds.command.read import plain_name, read_commands
from benchwright.kinds.names import with_unique_names
from benchwright.kinds.registry import all_kinds, by_kind, kind_for, kind_named, kind_of
from benchwright.kinds.system_folders import refuse_system_folder
from benchwright.options.table import MOST_OF_ONE, OPTIONS, Options
from benchwright.plan.file_names import safe_name

if TYPE_CHECKING:
    from collections.abc import Sequence


def resolve(asked: Options, *, allow_nothing: bool = False) -> Resolved:
    """Reads every target; InvalidInput says which one is wrong and why. `allow_nothing`: a resumed run knows its own."""
    asked = replace(asked, cwd=_checked_folder(asked.cwd), workers=workers_count(os.environ))
    named = with_default_target(asked, allow_nothing)
    options, of_folders = _with_files(named)
    benchmarks = _read_targets(options, of_folders)
    if options.metrics_template and not options.targets:
        benchmarks += _read_target(options.metrics_template, options)
    commands = _commands(options)
    benchmarks += commands
    if not benchmarks and not allow_nothing:
        remedy = "name a file (benchwright run train.py) or a command (benchwright run -- python train.py)"
        raise InvalidInput("nothing to measure", remedy=remedy)
    if options.setup or options.prepare or options.cleanup:
        from benchwright.kinds.hooks import with_hooks

        benchmarks = with_hooks(benchmarks, options)
    if options.name is not None:
        benchmarks = _named(benchmarks, options.name)
    benchmarks = [_with_other_names(options.applied(b), options) for b in benchmarks]
    benchmarks = _unique(benchmarks, named)
    _check_text(benchmarks)
    several = len(commands) > 1 or any(kind_of(b).alternates(b) for b in benchmarks)
    folders = of_folders or any(map(os.path.isdir, named.targets[:1]))
    name = _run_name(named if folders else options, benchmarks)
    options = checked_launches(
        replace(options, interleave=several if options.interleave is None else options.interleave)
    )
    if options.validations:
        options = replace(options, validations=validation_names(",".join(options.validations)))
    if options.android_dir and not options.remote_dir:
        options = replace(options, remote_dir=options.android_dir)
    for kind, same in by_kind(benchmarks):
        options = kind.completed(options, same)
    return Resolved(benchmarks=tuple(benchmarks), options=options, name=name)


def _with_other_names(benchmark: Benchmark, options: Options) -> Benchmark:
    others = options.same_models.get(benchmark.source)
    if not others:
        return benchmark
    note = f"measured once: {' and '.join(others)} {'is' if len(others) == 1 else 'are'} the same model"
    return replace(benchmark, notes=(*benchmark.notes, note))


def with_default_target(options: Options, allow_nothing: bool) -> Options:
    """Nothing named: the usual task file here, for --task, or the suite that $BENCHWRIGHT_CONFIG names. A run that is
    resumed knows its own target."""
    named = options.targets or options.command or options.commands or options.metrics_template
    if named or allow_nothing:
        return options
    if options.tasks:
        from benchwright.kinds.tasks.read import usual_task_file

        if (file := usual_task_file()) is not None:
            return replace(options, targets=(file,))
    from benchwright.kinds.suite.suites import suite_from_environment

    suite = suite_from_environment(os.environ)
    return options if suite is None else replace(options, targets=(suite,))


def _with_files(options: Options) -> tuple[Options, frozenset[str]]:
    """The options with folders replaced by their suites or scripts, and names of what is shipped by its file; and which
    targets are one of many."""
    if not options.targets and not options.all_scripts:
        return options, frozenset()
    from benchwright.kinds.models.scripts import with_scripts

    files = tuple(file_in(target) if os.path.isdir(target) else target for target in options.targets)
    options, of_folders = with_scripts(replace(options, targets=files))
    return replace(options, targets=tuple(map(shipped_file, options.targets))), of_folders


def shipped_file(target: str) -> str:
    """`target`, or the shipped suite or specification of that name if there is no such file here."""
    if os.path.exists(target):
        return target
    from benchwright.kinds.spec.read.shipped import shipped_specification
    from benchwright.kinds.suite.shipped import shipped_suite

    return shipped_suite(target) or shipped_specification(target) or target


def file_in(folder: str) -> str:
    """The one file that `folder` stands for, such as its suite; else the folder, for its scripts."""
    refuse_system_folder(folder)
    return next((file for kind in all_kinds() if (file := kind.file_in(folder)) is not None), folder)


def checked_launches(options: Options) -> Options:
    """`options` themselves; InvalidInput for a number of launches that cannot be."""
    if options.decision is not None and not options.interleave:
        raise InvalidInput(
            "a verdict needs benchmarks that alternate",
            where="--repeat",
            remedy="give two commands (-c A -c B), or --interleave",
        )
    for row in (row for row in OPTIONS.values() if row.most == MOST_OF_ONE):
        value = getattr(options, row.name)
        if value < (row.least or 0):
            raise InvalidInput(f"{value} is too few", where=row.name, remedy=f"give {row.least} or more")
        if value > MOST_OF_ONE:
            raise InvalidInput(f"{value} is too many", where=row.name, remedy=f"give {MOST_OF_ONE} or less")
    return options


def _read_targets(options: Options, of_folders: frozenset[str]) -> list[Benchmark]:
    """Of several files, one that cannot be read stops only itself; InvalidInput if none can."""
    found: list[Benchmark] = []
    faults: list[InvalidInput] = []
    for target in options.targets:
        read = _read_one_of_many if target in of_folders else _read_target
        try:
            found += read(target, options)
        except InvalidInput as fault:
            if len(options.targets) == 1 or options.script_args or not _is_about_a_file(fault, target):
                raise
            faults.append(fault)
            found.append(_faulty(target, fault, options.cwd or ""))
    if faults and len(faults) == len(options.targets):
        raise faults[0]
    return found


def _is_about_a_file(fault: InvalidInput, target: str) -> bool:
    """Rather than about the command line, which is wrong as a whole."""
    is_there = os.path.isfile(target.partition("::")[0])
    return is_there and fault.where is not None and not fault.where.startswith("-")


def _faulty(target: str, fault: InvalidInput, cwd: str) -> Benchmark:
    work = Command(argv=(), cwd=cwd)
    return Benchmark(name=Path(target).stem, workload=work, source=target, fault=fault.on_one_line)


def _read_target(target: str, options: Options) -> list[Benchmark]:
    kind = kind_named(options.format) if options.format else kind_for(target)
    if kind is None or not kind.recognises(target):
        _check_exists(target)
    if kind is None:
        refuse_broken(target)
        raise InvalidInput(
            "is not a suite, task file, specification, Python script or model file",
            where=target,
            remedy=f"give its kind with --format; to run it as a program: benchwright run -- {target}",
        )
    if options.script_args and not kind.takes_arguments:
        _refuse_arguments(target, options.script_args)
    return [b if b.kind == kind.name else replace(b, kind=kind.name) for b in kind.read(target, options)]


def _refuse_arguments(target: str, words: Sequence[str]) -> NoReturn:
    line = shlex.join(words)
    raise InvalidInput(
        f"is no script, and takes no arguments ({line})",
        where=target,
        remedy=f"name scripts only; a command to measure beside it is given with -c {shlex.quote(line)}",
    )


def _read_one_of_many(target: str, options: Options) -> list[Benchmark]:
    """One script of a folder: if it cannot be read, that is its own result, and the others are measured."""
    try:
        return _read_target(target, replace(options, one_of_many=True))
    except InvalidInput:
        return _read_target(target, replace(options, as_="command"))


def refuse_broken(target: str) -> None:
    """InvalidInput for JSON or YAML that cannot be read, or that belongs to a suite but is none."""
    if target.lower().endswith(".json"):
        from benchwright.kinds.spec.read.document import load

        load(target)
    if not target.lower().endswith((".yaml", ".yml")):
        return
    from benchwright.kinds.suite.read.suite import read_suite, yaml_kind

    options = {"system": "--system", "scaling": "--scaling"}
    kind = yaml_kind(target)
    if kind in options:
        remedy = f"name the suite, and give this with {options[kind]}"
        raise InvalidInput(f"is a {kind} file, not a suite", where=target, remedy=remedy)
    if kind is None:
        read_suite(target)


def _check_exists(target: str) -> None:
    path = Path(target.partition("::")[0])
    if not path.exists():
        from benchwright.kinds.spec.read.shipped import shipped_specifications
        from benchwright.kinds.suite.shipped import shipped_suites

        is_word = os.sep not in target and "." not in target
        remedy = f"to measure a command, write: benchwright run -- {target}" if is_word else "check the name"
        script, _, arguments = target.partition(" ")
        if arguments and os.path.isfile(script):
            remedy = f"put a script's arguments after --: benchwright run {script} -- {arguments}"
            raise InvalidInput("no such file", where=target, remedy=remedy)
        near = [str(path.with_name(name)) for name in os.listdir(path.parent)] if path.parent.is_dir() else []
        remedy = did_you_mean(str(path), [*near, *shipped_suites(), *shipped_specifications()]) or remedy
        raise InvalidInput("no such file", where=target, remedy=remedy)


def _commands(options: Options) -> list[Benchmark]:
    if not options.command and not options.commands:
        return []

    return read_commands(options)


def _check_text(benchmarks: list[Benchmark]) -> None:
    """InvalidInput for bytes that are no text: every file of a run is UTF-8."""
    for benchmark in benchmarks:
        try:
            msgspec.json.encode(benchmark)
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{error.object!a} is not UTF-8 text and cannot be recorded",
                where=ascii(benchmark.name)[1:-1],
                remedy="rename it, or put it in a script",
            ) from None


def names_only_files(options: Options) -> bool:
    """Whether nothing can be chosen from."""
    return not options.all_scripts and all(os.path.isfile(t.partition("::")[0]) for t in options.targets)


def _unique(benchmarks: list[Benchmark], options: Options) -> list[Benchmark]:
    """A script of a folder is called the same whichever part of the folder is measured."""
    shared: frozenset[str] = frozenset()
    if options.all_scripts or any(map(os.path.isdir, options.targets)):
        from benchwright.kinds.models.scripts import shared_names

        shared = shared_names(options)
    if len({b.name for b in benchmarks}) == len(benchmarks) and not shared:
        return benchmarks

    return with_unique_names(benchmarks, shared)


def _named(benchmarks: list[Benchmark], name: str) -> list[Benchmark]:
    if not name.strip():
        raise InvalidInput("the name is empty", where="--name", remedy="write a name, or drop --name")
    if len(benchmarks) != 1:
        raise InvalidInput(
            f"cannot name {len(benchmarks)} benchmarks at once", where="--name", remedy="measure one, or drop --name"
        )
    return [replace(benchmarks[0], name=name)]


def _run_name(options: Options, benchmarks: list[Benchmark]) -> str:
    """The target's name without its ending; a first benchmark's for commands."""
    if benchmarks and options.targets and "://" in options.targets[0]:
        return safe_name(benchmarks[0].name)
    if options.targets:
        return safe_name(Path(os.path.abspath(options.targets[0])).stem)
    if options.all_scripts and options.search_dirs:
        return safe_name(Path(os.path.abspath(options.search_dirs[0])).name)
    if options.name is None and (options.command or options.commands):
        return safe_name(plain_name(benchmarks[0]).removesuffix(".py"))
    return safe_name(benchmarks[0].name.removesuffix(".py")) if benchmarks else "run"


def _checked_folder(given: str | None) -> str:
    if given is None:
        return os.getcwd()
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise InvalidInput("no such folder", where=f"--cwd {given}", remedy="check the name")
    return str(path)

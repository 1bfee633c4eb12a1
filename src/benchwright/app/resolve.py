"""From what a user names to frozen Benchmarks."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from benchwright.analysis.checks.validation import validation_names
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.decision import Decision
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.inputs.request import Request, Resolved
from benchwright.core.metric import MetricSpec
from benchwright.core.numbers.aggregates import workers_count
from benchwright.core.settings import RunSettings
from benchwright.core.stop_rule import StopRule
from benchwright.kinds.registry import all_kinds, by_kind, kind_for, kind_named, kind_of
from benchwright.kinds.system_folders import refuse_system_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchwright.kinds.base import KindOptions


_MOST_LAUNCHES = 100_000  # of one benchmark; more would take all memory to plan


def resolve(request: Request, *, allow_nothing: bool = False) -> Resolved:
    """Reads every target; InvalidInput says which one is wrong and why. `allow_nothing`: a resumed run knows its own."""
    cwd = _checked_folder(request.cwd)
    metrics = _metrics(request)
    request = _with_default_target(request, allow_nothing)
    named = request
    request, of_folders = _with_files(request)
    benchmarks = _read_targets(request, of_folders, cwd, metrics)
    if request.task_options.get("metrics_template") and not request.targets:
        benchmarks += _read_target(request.task_options["metrics_template"], request, cwd, metrics)
    commands = _commands(request, cwd, metrics)
    benchmarks += commands
    if not benchmarks and not allow_nothing:
        remedy = "name a file (benchwright run train.py) or a command (benchwright run -- python train.py)"
        raise InvalidInput("nothing to measure", remedy=remedy)
    if request.setup or request.prepare or request.cleanup:
        from benchwright.kinds.hooks import with_hooks

        benchmarks = with_hooks(benchmarks, request, cwd)
    if request.name is not None:
        benchmarks = _named(benchmarks, request.name)
    benchmarks = [_with_other_names(request.options.applied(b), request) for b in benchmarks]
    benchmarks = _unique(benchmarks, named)
    _check_text(benchmarks)
    several = len(commands) > 1 or any(kind_of(b).alternates(b) for b in benchmarks)
    interleave = several if request.interleave is None else request.interleave
    settings = settings_of(request, interleave)
    if request.suite is not None and request.suite.validations:
        layers = validation_names(",".join(request.suite.validations))
        settings = msgspec.structs.replace(settings, validations=layers)
    for kind, same in by_kind(benchmarks):
        settings = kind.settings(settings, request, same)
    folders = of_folders or any(map(os.path.isdir, named.targets[:1]))
    name = _run_name(named if folders else request, benchmarks)
    return Resolved(benchmarks=tuple(benchmarks), settings=settings, name=name)


def _with_other_names(benchmark: Benchmark, request: Request) -> Benchmark:
    others = request.same_models.get(benchmark.source)
    if not others:
        return benchmark
    note = f"measured once: {' and '.join(others)} {'is' if len(others) == 1 else 'are'} the same model"
    return msgspec.structs.replace(benchmark, notes=(*benchmark.notes, note))


def _with_default_target(request: Request, allow_nothing: bool) -> Request:
    """Nothing named: the driver's task file here, for --task, or the suite that $BENCHWRIGHT_CONFIG names. A run that is
    resumed knows its own target."""
    named = request.targets or request.command or request.lines or request.task_options.get("metrics_template")
    if named or allow_nothing:
        return request
    if request.tasks:
        from benchwright.kinds.tasks.read import drivers_file

        if (file := drivers_file()) is not None:
            return msgspec.structs.replace(request, targets=(file,))
    if request.suite is None:
        return request
    from benchwright.kinds.suite.suites import suite_from_environment

    suite = suite_from_environment(os.environ)
    return request if suite is None else msgspec.structs.replace(request, targets=(suite,))


def _with_files(request: Request) -> tuple[Request, frozenset[str]]:
    """The request with folders replaced by their suites or scripts, and names of what is shipped by its file; and which
    targets are one of many."""
    if not request.targets and not request.all_scripts:
        return request, frozenset()
    from benchwright.kinds.models.scripts import with_scripts

    files = tuple(file_in(target) if os.path.isdir(target) else target for target in request.targets)
    request, of_folders = with_scripts(msgspec.structs.replace(request, targets=files))
    return msgspec.structs.replace(request, targets=tuple(map(shipped_file, request.targets))), of_folders


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


def settings_of(request: Request, interleave: bool) -> RunSettings:
    """How to run what was asked for; InvalidInput for a number of launches that cannot be."""
    enough = request.repeat if isinstance(request.repeat, StopRule) else None
    decision = request.repeat if isinstance(request.repeat, Decision) else None
    repeat = _most_launches(request.repeat)
    if decision is not None and not interleave:
        raise InvalidInput(
            "a verdict needs benchmarks that alternate",
            where="--repeat",
            remedy="give two commands (-c A -c B), or --interleave",
        )
    for value, least, where in ((repeat, 1, "repeat"), (request.warmup_runs, 0, "warmup_runs")):
        if value < least:
            raise InvalidInput(f"{value} is too few", where=where, remedy=f"give {least} or more")
        if value > _MOST_LAUNCHES:
            raise InvalidInput(f"{value} is too many", where=where, remedy=f"give {_MOST_LAUNCHES} or less")
    return RunSettings(
        repeat=repeat,
        enough=enough,
        decision=decision,
        warmup_runs=request.warmup_runs,
        interleave=interleave,
        turn_s=request.turn_s,
        echo=request.echo,
        discard_logs=request.discard_logs,
        cold=request.cold,
        overlap=request.overlap,
        lean_cache=request.lean_cache,
        build_jobs=request.build_jobs,
        max_memory_bytes=request.max_memory_bytes,
        stop_grace_s=request.stop_grace_s,
        sample_interval_s=request.sample_interval_s,
        seed=request.seed,
        on=request.on,
        remote_dir=request.remote_dir or request.specs.android_dir,
        keep_env=request.keep_env,
        shared=request.shared,
        workers=workers_count(os.environ),
    )


def _most_launches(repeat: int | StopRule | Decision) -> int:
    if isinstance(repeat, int):
        return repeat
    return repeat.most_launched if isinstance(repeat, Decision) else repeat.max_steps or 1


def _metrics(request: Request) -> tuple[MetricSpec, ...]:
    if not request.metrics:
        return ()
    from benchwright.kinds.metric_option import check_distinct, parse_metric_option

    metrics = tuple(parse_metric_option(text) for text in request.metrics)
    check_distinct(metrics)
    return metrics


def _read_targets(
    request: Request, of_folders: frozenset[str], cwd: str, metrics: tuple[MetricSpec, ...]
) -> list[Benchmark]:
    """Of several files, one that cannot be read stops only itself; InvalidInput if none can."""
    found: list[Benchmark] = []
    faults: list[InvalidInput] = []
    for target in request.targets:
        read = _read_one_of_many if target in of_folders else _read_target
        try:
            found += read(target, request, cwd, metrics)
        except InvalidInput as fault:
            if len(request.targets) == 1 or request.script_args or not _is_about_a_file(fault, target):
                raise
            faults.append(fault)
            found.append(_faulty(target, fault, cwd))
    if faults and len(faults) == len(request.targets):
        raise faults[0]
    return found


def _is_about_a_file(fault: InvalidInput, target: str) -> bool:
    """Rather than about the command line, which is wrong as a whole."""
    is_there = os.path.isfile(target.partition("::")[0])
    return is_there and fault.where is not None and not fault.where.startswith("-")


def _faulty(target: str, fault: InvalidInput, cwd: str) -> Benchmark:
    work = Command(argv=(), cwd=cwd)
    return Benchmark(name=Path(target).stem, workload=work, source=target, fault=fault.on_one_line)


def _read_target(
    target: str, request: Request, cwd: str, metrics: tuple[MetricSpec, ...], one_of_many: bool = False
) -> list[Benchmark]:
    kind = kind_named(request.format) if request.format else kind_for(target)
    if kind is None or not kind.recognises(target):
        _check_exists(target)
    if kind is None:
        refuse_broken(target)
        raise InvalidInput(
            "is not a suite, task file, specification, Python script or model file",
            where=target,
            remedy=f"give its kind with --format; to run it as a program: benchwright run -- {target}",
        )
    if request.script_args and not kind.takes_arguments:
        _refuse_arguments(target, request.script_args)
    options = msgspec.structs.replace(_kind_options(request, cwd, metrics), one_of_many=one_of_many)
    found = kind.read(target, options)
    return [b if b.kind == kind.name else msgspec.structs.replace(b, kind=kind.name) for b in found]


def _refuse_arguments(target: str, words: Sequence[str]) -> NoReturn:
    line = shlex.join(words)
    raise InvalidInput(
        f"is no script, and takes no arguments ({line})",
        where=target,
        remedy=f"name scripts only; a command to measure beside it is given with -c {shlex.quote(line)}",
    )


def _read_one_of_many(target: str, request: Request, cwd: str, metrics: tuple[MetricSpec, ...]) -> list[Benchmark]:
    """One script of a folder: if it cannot be read, that is its own result, and the others are measured."""
    try:
        return _read_target(target, request, cwd, metrics, one_of_many=True)
    except InvalidInput:
        return _read_target(target, msgspec.structs.replace(request, as_="command"), cwd, metrics)


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


def _kind_options(request: Request, cwd: str, metrics: tuple[MetricSpec, ...]) -> KindOptions:
    from benchwright.core.inputs.task_overrides import TaskOverrides, check_flag_name, parse_flag_option
    from benchwright.kinds.base import KindOptions
    from benchwright.kinds.sweep import sweep_points

    flags: dict[str, str | None] = dict(parse_flag_option(text) for text in request.set_flags)
    flags |= {check_flag_name(name, where="--remove-flag"): None for name in request.remove_flags}
    return KindOptions(
        names=request.tasks,
        metrics=metrics,
        tasks=TaskOverrides(
            **request.task_options, flags=flags, shell=request.shell, workers=workers_count(os.environ)
        ),
        script_args=request.script_args,
        python=request.python,
        cwd=cwd,
        as_=request.as_,
        select=request.suite.select if request.suite else (),
        exclude=request.suite.exclude if request.suite else (),
        overrides=request.suite.overrides if request.suite else (),
        definitions=request.suite.definitions if request.suite else "",
        models=request.models,
        specs=request.specs,
        builds=request.builds,
        zoos=request.zoos,
        points=tuple(sweep_points(request.params, request.sweep)),
    )


def _commands(request: Request, cwd: str, metrics: tuple[MetricSpec, ...]) -> list[Benchmark]:
    if not request.command and not request.lines:
        return []
    from benchwright.kinds.command.read import read_commands

    return read_commands(request, _kind_options(request, cwd, metrics))


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


def _unique(benchmarks: list[Benchmark], request: Request) -> list[Benchmark]:
    """A script of a folder is called the same whichever part of the folder is measured."""
    shared: frozenset[str] = frozenset()
    if request.all_scripts or any(map(os.path.isdir, request.targets)):
        from benchwright.kinds.models.scripts import shared_names

        shared = shared_names(request)
    if len({b.name for b in benchmarks}) == len(benchmarks) and not shared:
        return benchmarks
    from benchwright.kinds.naming import with_unique_names

    return with_unique_names(benchmarks, shared)


def _named(benchmarks: list[Benchmark], name: str) -> list[Benchmark]:
    if not name.strip():
        raise InvalidInput("the name is empty", where="--name", remedy="write a name, or drop --name")
    if len(benchmarks) != 1:
        raise InvalidInput(
            f"cannot name {len(benchmarks)} benchmarks at once", where="--name", remedy="measure one, or drop --name"
        )
    return [msgspec.structs.replace(benchmarks[0], name=name)]


def _run_name(request: Request, benchmarks: list[Benchmark]) -> str:
    """The target's name without its ending; a first benchmark's for commands."""
    from benchwright.plan.file_names import safe_name

    if request.targets:
        return safe_name(Path(os.path.abspath(request.targets[0])).stem)
    if request.all_scripts and request.search_dirs:
        return safe_name(Path(os.path.abspath(request.search_dirs[0])).name)
    if request.name is None and (request.command or request.lines):
        from benchwright.kinds.command.read import plain_name

        return safe_name(plain_name(benchmarks[0]).removesuffix(".py"))
    return safe_name(benchmarks[0].name.removesuffix(".py")) if benchmarks else "run"


def _checked_folder(given: str | None) -> str:
    if given is None:
        return os.getcwd()
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise InvalidInput("no such folder", where=f"--cwd {given}", remedy="check the name")
    return str(path)

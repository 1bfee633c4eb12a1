"""Task files as targets. docs/reference/task-files.md is the format."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import Benchmark, Command, Placement
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.base import Kind
from benchwright.kinds.command_words import Fail, check_line, command_from_line, read_line
from benchwright.kinds.metric_option import check_distinct, metrics_of
from benchwright.kinds.tasks.command_rewrite import (
    FlagChange,
    Rewritten,
    flag_token,
    gpus_change,
    nearest_flag,
    rewrite_line,
)
from benchwright.kinds.tasks.metrics import LISTS, read_metrics
from benchwright.kinds.tasks.syntax import Section, TaskEntry, TaskFile, read_task_file
from benchwright.options.table import Options

# Command-line overrides for the tasks of a task file.


class TaskOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """`num_gpus`, `epochs`, `kvstore` and `dtype` replace the command's flag, or are left out with a note if it has none.
    `flags` are replaced or added; None removes. The four of a policy belong together: a command from the command line,
    read with the patterns of a section."""

    framework: str | None = None
    metrics_suffix: str | None = None
    num_gpus: int | None = None
    epochs: int | None = None
    kvstore: str | None = None
    dtype: str | None = None
    flags: dict[str, str | None] = {}
    metrics_policy: str | None = None
    command_to_execute: str | None = None
    data_set: str | None = None
    metrics_template: str | None = None  # the file with the policy; None: the task file itself
    shell: bool = False
    cwd: str | None = None  # of `command_to_execute`; None: the current folder
    workers: int | None = None  # DEEPLEARNING_WORKERS_COUNT, which `average_aggregate` needs

    def check(self) -> None:
        """InvalidInput if a value or a combination makes no sense."""
        if self.num_gpus is not None and self.num_gpus < 0:
            raise InvalidInput(f"{self.num_gpus} is not a number of GPUs", where="--num-gpus", remedy="give 0 or more")
        if self.epochs is not None and self.epochs < 1:
            raise InvalidInput(f"{self.epochs} is not a number of epochs", where="--epochs", remedy="give 1 or more")
        for option, text in (("--framework", self.framework), ("--metrics-suffix", self.metrics_suffix)):
            if text is not None and not text.strip():
                raise InvalidInput("the name is empty", where=option, remedy="leave the option out, or give a name")
        if self.metrics_policy is not None and self.command_to_execute is None:
            raise InvalidInput(
                f"policy '{self.metrics_policy}' needs a command to measure",
                where="--metrics-policy",
                remedy="give it with --command-to-execute",
            )
        if self.metrics_policy is None and self.metrics_template is not None:
            raise InvalidInput(
                "a metrics template is only read for a policy",
                where="--metrics-template",
                remedy="name the policy with --metrics-policy",
            )


_SAME = (
    *("framework", "metrics_suffix", "num_gpus", "epochs", "kvstore", "dtype", "metrics_policy"),
    *("command_to_execute", "data_set", "metrics_template", "shell", "cwd", "workers"),
)


def overrides_of(options: Options) -> TaskOverrides:
    """Overrides of tasks by the options; InvalidInput for a word that is not a flag."""
    flags: dict[str, str | None] = dict(parse_flag_option(text) for text in options.set_flags)
    flags |= {check_flag_name(name, where="--remove-flag"): None for name in options.remove_flags}
    return TaskOverrides(**{name: getattr(options, name) for name in _SAME}, flags=flags)


def parse_flag_option(text: str) -> tuple[str, str]:
    """Name and value from `--set-flag batch-size=64`; keeps leading dashes, for flags such as `-b`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(
            f"'{text}' has no value", where="--set-flag", remedy="write NAME=VALUE; --remove-flag NAME removes a flag"
        )
    return check_flag_name(name, where="--set-flag"), value


def check_flag_name(name: str, *, where: str) -> str:
    """`name` itself if it is a valid name of a flag."""
    if not re.fullmatch(r"-{0,2}[A-Za-z0-9_][\w.-]*", name):
        raise InvalidInput(f"'{name}' is not the name of a flag", where=where, remedy="write it like batch-size")
    return name


# The options that change flags of a task's command.


def flag_changes(overrides: TaskOverrides) -> list[FlagChange]:
    """Changes that the options ask for, in the order they are made."""
    changes = [] if overrides.num_gpus is None else [gpus_change(overrides.num_gpus)]
    for flag, value in (("epochs", overrides.epochs), ("kvstore", overrides.kvstore), ("dtype", overrides.dtype)):
        if value is not None:
            changes.append(FlagChange(flag_token(flag), str(value)))
    changes += [FlagChange(flag_token(flag), value, add=True) for flag, value in overrides.flags.items()]
    return changes


def notes_on_missing(
    task: str, rewritten: Rewritten, overrides: TaskOverrides, fail: Fail, own_gpus: int
) -> tuple[str, ...]:
    """A sentence for each option that changed nothing: it must not run 400 epochs where 2 were asked for, unnoticed."""
    notes = []
    for change in rewritten.missing:
        if change.add:
            raise fail(
                f"{change.flag} cannot be added to this command, it may belong to any part of it",
                0,
                "write it in the command",
            )
        near = nearest_flag(rewritten.line, change.flag)
        instead = (near or change.flag).lstrip("-")
        if change.counts_devices:
            if overrides.num_gpus != own_gpus:
                notes.append(
                    f"--num-gpus {change.value}: {task} is given that many GPUs; its command has no --gpus and was left unchanged"
                )
            continue
        notes.append(
            f"{change.flag} {change.value}: the command of {task} has no {change.flag}"
            + (f" (it has {near})" if near else "")
            + f" and was left unchanged; --set-flag {instead}={change.value} {'changes' if near else 'adds'} it"
        )
    return tuple(notes)


def check_taken_as_typed(overrides: TaskOverrides) -> None:
    """InvalidInput if a flag is to be changed in a command that was itself typed on the command line."""
    for option, value in (
        ("--epochs", overrides.epochs),
        ("--kvstore", overrides.kvstore),
        ("--dtype", overrides.dtype),
        ("--set-flag", overrides.flags or None),
    ):
        if value is not None:
            raise InvalidInput(
                "a command given with --command-to-execute is run as it is typed",
                where=option,
                remedy="write the flag into it",
            )


KEYS = (*LISTS, "command_to_execute", "num_gpus")
POLICY_PREFIX = "metrics_"
USUAL_FILE = "task_config_template.cfg"
UNCHANGED = TaskOverrides()
_SUFFIXES = (".cfg", ".ini")
_SNIFFED_BYTES = 64 << 10
_LOOKS_LIKE_TASKS = re.compile(
    rb"^\s*\[[^\]\n]+\]\s*$(?s:.*)^\s*(?:patterns|compute_method|command_to_execute)\s*[=:]", re.M
)


class TaskKind(Kind):
    """Reads task files."""

    name = "tasks"

    def recognises(self, target: str) -> bool:
        if not os.path.isfile(target):
            return False
        extension = os.path.splitext(target)[1].lower()
        if extension:
            return extension in _SUFFIXES
        try:
            with open(target, "rb") as file:
                return _LOOKS_LIKE_TASKS.search(file.read(_SNIFFED_BYTES)) is not None
        except OSError:
            return False

    def read(self, target: str, options: Options) -> list[Benchmark]:
        found = read_tasks(target, tasks=options.tasks or None, overrides=overrides_of(options))
        if options.metrics:
            found = [msgspec.structs.replace(b, metrics=b.metrics + metrics_of(options)) for b in found]
        for benchmark in found:
            check_distinct(benchmark.metrics)
        return found


def read_tasks(
    path: str, *, tasks: Sequence[str] | None = None, overrides: TaskOverrides = UNCHANGED
) -> list[Benchmark]:
    """The tasks called `tasks`, in that order, or every task of the file; or the one a policy makes of a given command.

    Without `tasks`, one that cannot be run as it is written becomes a benchmark with its `fault`, so that the others
    still run. InvalidInput, which points at the line, if a chosen one is wrong or all of them are.
    """
    overrides.check()
    if overrides.command_to_execute is not None:
        check_taken_as_typed(overrides)
    if overrides.metrics_policy is not None:
        return [_with_policy(path, tasks or (), overrides)]
    file = read_task_file(path)
    sections = _selected(file, tasks)
    if overrides.command_to_execute is not None and len(sections) != 1:
        raise InvalidInput(
            f"a command can replace that of one task, not of {len(sections)}",
            where="--command-to-execute",
            remedy="choose the task with --task, or the patterns with --metrics-policy",
        )
    if tasks or overrides.command_to_execute is not None:
        return [_task(file, section, overrides) for section in sections]
    return _all_tasks(file, sections, overrides)


def _all_tasks(file: TaskFile, sections: Sequence[Section], overrides: TaskOverrides) -> list[Benchmark]:
    found, faults = [], []
    for section in sections:
        try:
            found.append(_task(file, section, overrides))
        except InvalidInput as fault:
            faults.append(fault)
            found.append(_faulty(file, section, fault))
    if len(faults) == len(sections):
        raise faults[0]
    return found


def _faulty(file: TaskFile, section: Section, fault: InvalidInput) -> Benchmark:
    entry = section.entries.get("command_to_execute")
    return Benchmark(
        name=section.name,
        workload=Command(
            argv=(entry.value,) if entry else (),
            cwd=os.path.dirname(os.path.abspath(file.path)),
            shell=entry is not None,
        ),
        source=f"{file.path}:{section.line} [{section.name}]",
        fault=fault.on_one_line,
    )


def usual_task_file() -> str | None:
    """The task file that need not be named, if it lies here."""
    return USUAL_FILE if os.path.isfile(USUAL_FILE) else None


def task_faults(path: str) -> list[InvalidInput]:
    """Everything that is wrong with the sections of a task file, its policies too."""
    file = read_task_file(path)
    faults = []
    for section in file.sections.values():
        try:
            if is_policy(section):
                _check_keys(file, section)
                read_metrics(file, section, workers=1)  # how many workers there are matters when it is used
            else:
                _task(file, section, TaskOverrides(workers=1))
        except InvalidInput as fault:
            faults.append(fault)
    return faults


def policies_by_content(path: str) -> list[str]:
    """Policies whose names do not begin with metrics_."""
    sections = read_task_file(path).sections.values()
    return [s.name for s in sections if is_policy(s) and not s.name.startswith(POLICY_PREFIX)]


def is_policy(section: Section) -> bool:
    """Patterns without a command, to be combined with one given on the command line."""
    if "command_to_execute" in section.entries:
        return False
    only_patterns = bool(section.entries) and all(key in LISTS for key in section.entries)
    return only_patterns or section.name.startswith(POLICY_PREFIX)


def _selected(file: TaskFile, names: Sequence[str] | None) -> list[Section]:
    if names:
        return [_find(file, name, "--task") for name in dict.fromkeys(names)]
    found = [section for section in file.sections.values() if not is_policy(section)]
    if not found:
        raise InvalidInput(
            "the file has only metrics policies, no task with a command",
            where=file.path,
            remedy="combine a policy with a command: --metrics-policy NAME --command-to-execute COMMAND",
        )
    return found


def _find(file: TaskFile, name: str, option: str) -> Section:
    section = file.sections.get(name)
    if section is not None:
        return section
    policy = option == "--metrics-policy"
    known = [n for n, s in file.sections.items() if is_policy(s) == policy]
    raise InvalidInput(
        f"{file.path} has no {'policy' if policy else 'task'} '{name}'",
        where=option,
        remedy=did_you_mean(name, known) or (f"it has {_some(known)}" if known else None),
    )


def _some(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _task(file: TaskFile, section: Section, overrides: TaskOverrides) -> Benchmark:
    _check_keys(file, section)
    metrics = read_metrics(file, section, workers=overrides.workers)
    entry = section.entries.get("command_to_execute")
    own_gpus = _num_gpus(file, section)
    num_gpus = own_gpus if overrides.num_gpus is None else overrides.num_gpus
    notes: tuple[str, ...] = ()
    if overrides.command_to_execute is not None:
        line, cwd, fail = overrides.command_to_execute, overrides.cwd or os.getcwd(), _fail_typed(overrides)
    elif entry is None:
        raise _no_command(file, section)
    else:
        fail = _fail_at(file, entry)
        check_line(entry.value, shell=True, fail=fail)
        rewritten = rewrite_line(entry.value, flag_changes(overrides))
        notes = notes_on_missing(section.name, rewritten, overrides, fail, own_gpus)
        line, cwd = rewritten.line, os.path.dirname(os.path.abspath(file.path))
    shell_notes = _shell_notes(section.name, line, overrides)
    command = command_from_line(line, cwd=cwd, shell=overrides.shell or bool(shell_notes), fail=fail)
    return Benchmark(
        name=section.name,
        workload=command,
        source=f"{file.path}:{section.line} [{section.name}]",
        metrics=metrics,
        placement=Placement(needs_devices=num_gpus),
        labels=_labels(overrides),
        parameters=_parameters(overrides),
        result_prefix=_prefix(section.name, overrides),
        result_suffix=overrides.metrics_suffix,
        notes=notes + shell_notes,
    )


def _with_policy(path: str, names: Sequence[str], overrides: TaskOverrides) -> Benchmark:
    if len(names) > 1:
        raise InvalidInput(
            "a policy measures one command, so one name", where="--task", remedy="give the name of the result once"
        )
    file = read_task_file(overrides.metrics_template or path)
    section = _find(file, overrides.metrics_policy or "", "--metrics-policy")
    _check_keys(file, section)
    metrics = read_metrics(file, section, workers=overrides.workers)
    if not metrics:
        raise file.error(f"policy [{section.name}] has no patterns", section.line, f"give it {', '.join(LISTS)}")
    name = names[0] if names else section.name
    num_gpus = _num_gpus(file, section) if overrides.num_gpus is None else overrides.num_gpus
    line = overrides.command_to_execute or ""
    notes = _shell_notes(name, line, overrides)
    shell = overrides.shell or bool(notes)
    return Benchmark(
        name=name,
        workload=command_from_line(line, cwd=overrides.cwd or os.getcwd(), shell=shell, fail=_fail_typed(overrides)),
        source=f"{file.path}:{section.line} [{section.name}] with a command of the command line",
        metrics=metrics,
        placement=Placement(needs_devices=num_gpus),
        labels=_labels(overrides),
        parameters=_parameters(overrides),
        result_prefix=_prefix(name, overrides),
        result_suffix=overrides.metrics_suffix,
        notes=notes,
    )


def _shell_notes(name: str, line: str, overrides: TaskOverrides) -> tuple[str, ...]:
    """A note if the line goes to a shell without --shell. Task files were written for one."""
    need = read_line(line).needs_shell
    return () if need is None or overrides.shell else (f"{name} runs in a shell: {need.what} needs one",)


def _check_keys(file: TaskFile, section: Section) -> None:
    for key, entry in section.entries.items():
        if key not in KEYS:
            raise file.error(
                f"'{key}' is not a key of a task", entry.place, did_you_mean(key, KEYS) or f"use {', '.join(KEYS)}"
            )


def _no_command(file: TaskFile, section: Section) -> InvalidInput:
    if is_policy(section):
        what = f"[{section.name}] is a metrics policy and has no command"
        remedy = f"give one: --metrics-policy {section.name} --command-to-execute COMMAND"
    else:
        what = f"[{section.name}] has no command_to_execute"
        remedy = f"add it; a policy has only {', '.join(LISTS)}"
    return file.error(what, section.line, remedy)


def _num_gpus(file: TaskFile, section: Section) -> int:
    entry = section.entries.get("num_gpus")
    if entry is None:
        return 0
    if not re.fullmatch(r"[0-9]{1,6}", entry.value):
        raise file.error(f"num_gpus is '{entry.value}', not a number of GPUs", entry.value_place, "write 0 or more")
    return int(entry.value)


def _fail_at(file: TaskFile, entry: TaskEntry) -> Fail:
    return lambda what, position, remedy: file.error(what, entry.place_of(position), remedy)


def _fail_typed(overrides: TaskOverrides) -> Fail:
    line = overrides.command_to_execute
    return lambda what, position, remedy: InvalidInput(what, where="--command-to-execute", remedy=remedy, text=line)


def _prefix(name: str, overrides: TaskOverrides) -> str:
    return f"{overrides.framework}.{name}" if overrides.framework else name


def _labels(overrides: TaskOverrides) -> dict[str, str]:
    named = {"framework": overrides.framework, "data_set": overrides.data_set}
    return {key: value for key, value in named.items() if value is not None}


def _parameters(overrides: TaskOverrides) -> dict[str, str]:
    given = {
        "num_gpus": overrides.num_gpus,
        "epochs": overrides.epochs,
        "kvstore": overrides.kvstore,
        "dtype": overrides.dtype,
    }
    set_flags = {name.lstrip("-"): value for name, value in overrides.flags.items()}
    return {key: str(value) for key, value in {**given, **set_flags}.items() if value is not None}

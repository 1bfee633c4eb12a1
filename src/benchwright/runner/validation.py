"""Files checked, suites and task files resolved, without planning or running anything."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.kinds.models.script_notes import faults_of
from benchwright.kinds.models.zoo.targets import is_zoo_target
from benchwright.kinds.registry import kind_for, kind_named
from benchwright.kinds.spec.read.specification import specification_faults
from benchwright.kinds.suite.batch_sizes import read_scaling
from benchwright.kinds.suite.plan.unrunnable import unrunnable
from benchwright.kinds.suite.read.folder import plain
from benchwright.kinds.suite.read.suite import read_suite, suite_benchmarks, yaml_kind
from benchwright.kinds.suite.shipped import named_file
from benchwright.kinds.suite.suites import suite_from_environment
from benchwright.kinds.suite.system_file import read_system
from benchwright.kinds.tasks.read import TaskKind, policies_by_content, task_faults, usual_task_file
from benchwright.kinds.tasks.resolved import resolved_tasks
from benchwright.options.table import Options
from benchwright.runner.resolve import file_in, refuse_broken, shipped_file

_MEASURED = ("suite", "tasks", "script", "spec", "zoo")


class ResolvedFile(msgspec.Struct, frozen=True):
    """Entries or tasks by name, ready for JSON, and warnings."""

    entries: dict[str, dict[str, Any]]
    warnings: tuple[str, ...]


class CheckedFile(msgspec.Struct, frozen=True):
    """The contents of a file, or its errors."""

    path: str
    kind: str | None
    benchmarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[InvalidInput, ...] = ()

    def text(self) -> str:
        if self.errors:
            return "\n".join(map(str, self.errors))
        count = len(self.benchmarks)
        holds = f"{count} benchmark{'' if count == 1 else 's'}" if self.kind in _MEASURED else f"a {self.kind} file"
        return "\n".join([f"{self.path}: ok, {holds}", *(f"  {warning}" for warning in self.warnings)])

    def body(self) -> dict[str, object]:
        """For JSON."""
        return {
            "file": self.path,
            "kind": self.kind,
            "ok": not self.errors,
            "benchmarks": list(self.benchmarks),
            "warnings": list(self.warnings),
            "errors": [
                {
                    "what": error.what,
                    "where": error.where,
                    "line": error.line,
                    "column": error.column,
                    "remedy": error.remedy,
                }
                for error in self.errors
            ],
        }


def resolve_file(
    path: str | None, *, select: Sequence[str] = (), exclude: Sequence[str] = (), overrides: Sequence[str] = ()
) -> ResolvedFile:
    """The suite or task file at `path`, else the suite of the environment or the usual task file here.

    With a selection, only what it means, enabled or not.
    """
    path = path or suite_from_environment(os.environ) or usual_task_file()
    if path is None:
        raise InvalidInput("nothing is named", remedy="name a suite or a task file, or set BENCHWRIGHT_CONFIG")
    if not TaskKind().recognises(path):
        return _resolved_suite(path, select, exclude, overrides)
    if overrides:
        remedy = "change the flags of a command with 'benchwright plan FILE --set-flag FLAG=VALUE'"
        raise InvalidInput(f"{path} is a task file, not a suite", where="--override", remedy=remedy)

    return ResolvedFile(*resolved_tasks(path, select=select, exclude=exclude))


def _resolved_suite(path: str, select: Sequence[str], exclude: Sequence[str], overrides: Sequence[str]) -> ResolvedFile:
    suite = read_suite(named_file(path), overrides=overrides, select=select, exclude=exclude)
    meant = {*suite.selected, *suite.disabled}
    return ResolvedFile({n: plain(e) for n, e in suite.entries.items() if n in meant}, suite.warnings)


def check_file(path: str, kind: str | None = None) -> CheckedFile:
    """Reads the file at `path` as what it is: a suite, a system or scaling file, a task file, a specification, a script; or as a `kind`."""
    path = shipped_file(path)
    try:
        if is_zoo_target(path):
            return _check_targets(path, "zoo")
        if os.path.isdir(path):
            path = file_in(path)
        if os.path.isdir(path):
            raise InvalidInput("there is no suite in this folder", where=path, remedy="name a file in it")
        if not os.path.isfile(path):
            raise InvalidInput("no such file", where=path, remedy="check the name")
        kind = kind or _kind_of(path)
        if kind == "suite":
            return _check_suite(path)
        if kind == "system":
            read_system(path)
            return CheckedFile(path, kind)
        if kind == "scaling":
            read_scaling(path)
            return CheckedFile(path, kind)
        if kind == "spec":
            return _check_specification(path)
        return _check_tasks(path) if kind == "tasks" else _check_targets(path, kind)
    except InvalidInput as error:
        return CheckedFile(path, kind, errors=(error,))


def _kind_of(path: str) -> str:
    source = kind_for(path)
    if source is not None:
        return source.name
    if path.lower().endswith((".yaml", ".yml")) and (found := yaml_kind(path)) is not None:
        return found
    refuse_broken(path)
    raise InvalidInput(
        "is neither a suite, a system file, a task file, a specification nor a Python script",
        where=path,
        remedy="give its kind with --format",
    )


def _check_targets(path: str, kind: str) -> CheckedFile:
    found = kind_named(kind).read(path, Options())
    warnings = tuple(n for b in found for n in b.notes)
    if kind == "script":
        warnings = (*warnings, *faults_of(Path(path)))
    return CheckedFile(path, kind, tuple(b.name for b in found), warnings)


def _check_tasks(path: str) -> CheckedFile:
    """Reports every section that cannot run, and notes sections that are metrics policies."""
    if faults := task_faults(path):
        return CheckedFile(path, "tasks", errors=tuple(faults))
    found = _check_targets(path, "tasks")
    notes = tuple(f"[{name}] has patterns and no command: a metrics policy" for name in policies_by_content(path))
    return msgspec.structs.replace(found, warnings=(*found.warnings, *notes))


def _check_specification(path: str) -> CheckedFile:
    """Reports every file of a list that cannot be read."""
    if faults := specification_faults(path):
        return CheckedFile(path, "spec", errors=tuple(faults))
    return _check_targets(path, "spec")


def _check_suite(path: str) -> CheckedFile:
    """Every entry, disabled ones too. What cannot run on this machine is a warning: it may on another."""
    suite = read_suite(path)
    benchmarks = suite_benchmarks(suite)
    warnings = (*suite.warnings, *unrunnable([b for b in benchmarks if b.enabled]))
    return CheckedFile(path, "suite", tuple(b.name for b in benchmarks), warnings)

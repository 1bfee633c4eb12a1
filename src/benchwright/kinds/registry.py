"""Which kinds there are: our own, loaded only when used, and those that other packages add."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.base import ENTRY_POINT_GROUP, Kind, KindOptions
from benchwright.plan.base import PlanContext, Planner

# The same as the entry points of this package: looking those up costs more than loading these.
BUILT_IN = {
    "suite": "benchwright.kinds.suite.kind:SuiteKind",
    "tasks": "benchwright.kinds.tasks.read:TaskKind",
    "script": "benchwright.kinds.models.script:ScriptKind",
    "model": "benchwright.kinds.models.model_file:ModelFileKind",
    "command": "benchwright.kinds.command.read:CommandKind",
}


def kind_named(name: str) -> Kind:
    """The kind that `--format` calls so."""
    if (found := _kind(name)) is not None:
        return found
    known = [*BUILT_IN, *(entry.name for entry in metadata.entry_points(group=ENTRY_POINT_GROUP))]
    remedy = did_you_mean(name, known) or f"use one of {', '.join(dict.fromkeys(known))}"
    raise InvalidInput(f"'{name}' is not a format", where="--format", remedy=remedy)


def kind_for(target: str) -> Kind | None:
    """The first kind that recognises `target`; ours first."""
    return next((kind for kind in all_kinds() if kind.recognises(target)), None)


def kind_of(benchmark: Benchmark) -> Kind:
    """The kind of a benchmark. One that is not installed here can still be read back, but not planned."""
    return _kind(benchmark.kind) or MissingKind(benchmark.kind)


def by_kind(benchmarks: Iterable[Benchmark]) -> list[tuple[Kind, list[Benchmark]]]:
    """Each kind of `benchmarks`, with those that are of it."""
    groups: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        groups.setdefault(benchmark.kind, []).append(benchmark)
    return [(kind_of(same[0]), same) for same in groups.values()]


def all_kinds() -> Iterator[Kind]:
    """Every kind there is, ours first."""
    added = [entry.name for entry in metadata.entry_points(group=ENTRY_POINT_GROUP) if entry.name not in BUILT_IN]
    for name in (*BUILT_IN, *added):
        kind = _kind(name)
        assert kind is not None
        yield kind


class MissingKind(Kind):
    """Stands for the kind of a run that was made where another package added it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def recognises(self, target: str) -> bool:
        return False

    def read(self, target: str, options: KindOptions) -> list[Benchmark]:
        raise self._error()

    def planner(self, context: PlanContext) -> Planner:
        raise self._error()

    def _error(self) -> InvalidInput:
        return InvalidInput(f"the kind '{self.name}' is not installed here", remedy="install the package that adds it")


@cache
def _kind(name: str) -> Kind | None:
    kind: Kind
    if name in BUILT_IN:
        module, _, class_name = BUILT_IN[name].partition(":")
        kind = getattr(importlib.import_module(module), class_name)()
        return kind
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP, name=name):
        kind = entry.load()()
        return kind
    return None

"""The known kinds: the built-in ones, loaded only when used, and kinds of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BrokenPlugin, InvalidInput
from benchwright.core.registry import Registry
from benchwright.kinds.base import ENTRY_POINT_GROUP, Kind
from benchwright.options.table import Options
from benchwright.plan.base import PlanContext, Planner
from benchwright.report.base import Contribution, Report, joined

KINDS: Registry[Callable[[], Kind]] = Registry(ENTRY_POINT_GROUP, "kind of target")


@cache
def kind_named(name: str) -> Kind:
    """The kind that `--format` calls so; InvalidInput if there is none, BrokenPlugin if it cannot be loaded."""
    return KINDS.load(name, where="--format")()


def kind_for(target: str) -> Kind | None:
    """The first kind that recognises `target`; ours first."""
    return next((kind for kind in all_kinds() if kind.recognises(target)), None)


def kind_of(benchmark: Benchmark) -> Kind:
    """The kind of a benchmark. One that is not installed here, or is broken, can still be read back, but not planned."""
    return _installed(benchmark.kind) or MissingKind(benchmark.kind)


def by_kind(benchmarks: Iterable[Benchmark]) -> list[tuple[Kind, list[Benchmark]]]:
    """Each kind of `benchmarks`, with its benchmarks."""
    groups: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        groups.setdefault(benchmark.kind, []).append(benchmark)
    return [(kind_of(same[0]), same) for same in groups.values()]


def added_by_kinds(report: Report) -> Contribution:
    """Additions of all kinds of a run's benchmarks to its report."""
    kinds = {type(kind).report: kind for kind, _ in by_kind(r.benchmark for r in report.run.results)}
    return joined([kind.report(report) for kind in kinds.values()])


def all_kinds() -> Iterator[Kind]:
    """Every kind that can be loaded, ours first."""
    yield from map(kind_named, KINDS.built_in)
    for name in KINDS.plugins():
        try:
            yield kind_named(name)
        except BrokenPlugin:
            continue  # `bw doctor` says so, and so does `--format` with its name


class MissingKind(Kind):
    """Stands for the kind of a run that was made where another package added it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def recognises(self, target: str) -> bool:
        return False

    def read(self, target: str, options: Options) -> list[Benchmark]:
        raise self._error()

    def planner(self, context: PlanContext) -> Planner:
        raise self._error()

    def _error(self) -> InvalidInput:
        return InvalidInput(f"the kind '{self.name}' is not installed here", remedy="install the package that adds it")


@cache
def _installed(name: str) -> Kind | None:
    try:
        return kind_named(name) if name in KINDS else None
    except BrokenPlugin:
        return None

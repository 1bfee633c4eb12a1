"""Suites as a kind of target."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.executors.observer import Observer
from benchwright.executors.registry import is_here
from benchwright.kinds.base import Kind, nothing_ready
from benchwright.kinds.requests.gather import RequestsGatherer, is_client
from benchwright.kinds.requests.report import contribution
from benchwright.kinds.suite.plan.planner import SuitePlanner
from benchwright.kinds.suite.read.folder import has_program
from benchwright.kinds.suite.read.suite import is_suite, refuse_unrunnable, selected_benchmarks, suite_in
from benchwright.kinds.suite.setup.auto_setup import clone_missing, runnable_here, set_up_missing
from benchwright.kinds.suite.setup.readiness import outdated, readiness, readiness_together
from benchwright.kinds.suite.suites import suite_paths_of
from benchwright.options.table import Options
from benchwright.plan.base import PlanContext, Planner
from benchwright.record.base import Gatherer, PlainGatherer
from benchwright.report.base import Contribution, Report

_MOST_FILES = 1000  # of a benchmark's folder
_LEFT_OUT = ("__pycache__", "node_modules", "venv")


class SuiteKind(Kind):
    """Reads suites, and runs their benchmarks in the environments that `install` made for them."""

    name = "suite"
    has_score = True
    fills_words = True
    probe_packages = ("benchprobe", "benchload")  # the latter for `client: endpoint`

    def recognises(self, target: str) -> bool:
        return is_suite(target)

    def file_in(self, folder: str) -> str | None:
        return suite_in(folder)

    def read(self, target: str, options: Options) -> list[Benchmark]:
        return selected_benchmarks(target, options)

    def with_arguments(self, benchmark: Benchmark, words: tuple[str, ...]) -> Benchmark:
        """Of a server that our client measures, they are the server's: what the client asks is the same on both sides."""
        folder = benchmark.folder
        if folder is None or folder.serving is None or not _has_our_client(benchmark):
            return super().with_arguments(benchmark, words)
        serving = replace(folder.serving, args=(*folder.serving.args, *words))
        return replace(benchmark, folder=replace(folder, serving=serving))

    def with_programs(self, benchmark: Benchmark, programs: Mapping[str, str]) -> Benchmark:
        what = "benchmarks of a suite run in environments of their own"
        raise InvalidInput(what, where="bin", remedy="compare two commits, or packages with pip:")

    def completed(self, options: Options, benchmarks: Sequence[Benchmark]) -> Options:
        if not options.base:
            return options

        return replace(options, suite_paths=suite_paths_of(options, benchmarks))

    def not_ready(self, benchmarks: Sequence[Benchmark], options: Options) -> dict[str, str]:
        """Missing folders, scripts, environments and data, and benchfiles we cannot follow."""
        if options.suite_paths is None:
            return {}

        wrong = _unrunnable(benchmarks)
        lacking = readiness([b for b in benchmarks if b.name not in wrong], options.suite_paths)
        return {name: str(error) for name, error in wrong.items()} | lacking

    def set_up(self, benchmarks: Sequence[Benchmark], options: Options, observer: Observer) -> dict[str, str] | None:
        """Clones definitions; once they are here, installs; once that is done, prepares. Leaves out what is skipped here."""
        if options.suite_paths is None:
            return None

        lacking = self.not_ready(benchmarks, options)
        todo = [b for b in benchmarks if b.name in lacking]
        if is_here(options.on, options.suite_paths.system):  # what others skip is not known here
            todo = runnable_here(todo, options.suite_paths)
        failed = clone_missing(todo, observer)
        if failed is not None:
            return failed
        wrong = _unrunnable(todo, before_install=True)
        usable = [b for b in todo if b.name not in wrong]
        return set_up_missing(usable, options.suite_paths, options, observer)

    def refusal(self, benchmarks: Sequence[Benchmark], options: Options) -> BenchwrightError:
        """Names benchmarks with the same problem together."""
        assert options.suite_paths is not None  # else nothing could be missing

        for error in _unrunnable(benchmarks).values():
            return error
        return CannotMeasure(nothing_ready(readiness_together(benchmarks, options.suite_paths)))

    def warnings(self, benchmarks: Sequence[Benchmark], options: Options) -> list[str]:
        if options.suite_paths is None:
            return []

        return [
            f"{name}: its new requirements could not be installed; it ran in the previous environment"
            for name in outdated(benchmarks, options.suite_paths)
        ]

    def planner(self, context: PlanContext) -> Planner:
        if context.options.suite_paths is None:
            raise InvalidInput("benchmarks of a suite need a base folder", remedy="choose one with --base")

        return SuitePlanner(context, context.options.suite_paths)

    def packages_for(self, benchmarks: Sequence[Benchmark]) -> tuple[str, ...]:
        return self.probe_packages if any(map(_has_our_client, benchmarks)) else self.probe_packages[:1]

    def report(self, report: Report) -> Contribution:
        return contribution(report, self.name)

    def gatherer(self, benchmark: Benchmark) -> Gatherer:
        if _has_our_client(benchmark):
            return RequestsGatherer(benchmark.warmup)
        gatherer = PlainGatherer()
        gatherer.observations = _observations(benchmark)
        return gatherer

    def promises_rate(self, benchmark: Benchmark) -> bool:
        """A script's loop, or what the entry reads from its output; of a command the time is known."""
        return not isinstance(benchmark.workload, Command)

    def code_files(self, benchmark: Benchmark) -> list[str]:
        """Every file of its folder, and of the folder its suite's benchmarks share."""
        if benchmark.folder is None:
            return []
        folder = benchmark.folder.path
        config = benchmark.folder.config
        if not config.get("definition") and has_program(config):  # a command or script in the suite's own folder
            return [] if benchmark.workload.script is None else [benchmark.workload.script]
        return [*_all_in(folder), *_all_in(os.path.join(os.path.dirname(folder), "_shared"))]


def _has_our_client(benchmark: Benchmark) -> bool:
    work = benchmark.workload
    return isinstance(work, Command) and is_client(work.argv)


def _unrunnable(benchmarks: Sequence[Benchmark], *, before_install: bool = False) -> dict[str, InvalidInput]:
    """Benchmarks whose folder, script or benchfile cannot be used."""
    found = {}
    for benchmark in benchmarks:
        try:
            refuse_unrunnable([benchmark], before_install=before_install)
        except InvalidInput as error:
            found[benchmark.name] = error
    return found


def _observations(benchmark: Benchmark) -> int | None:
    """The number of observations that the runner will make."""
    runner = benchmark.folder.runner if benchmark.folder is not None else None
    options = runner.settings.get("options") if runner is not None else None
    stop = options.get("stop") if isinstance(options, dict) else None
    return stop if isinstance(stop, int) and not isinstance(stop, bool) and stop > 0 else None


def _all_in(folder: str) -> Iterator[str]:
    """Files of a benchmark's folder without hidden ones and caches; of very many, the first."""
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
        for name in sorted(names):
            if name.startswith(".") or name.endswith(".pyc"):
                continue
            count += 1
            if count > _MOST_FILES:
                return
            yield os.path.join(place, name)

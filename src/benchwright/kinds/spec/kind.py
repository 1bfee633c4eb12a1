"""Specifications as targets: tests of models for any program."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.job import Job
from benchwright.core.model import Model
from benchwright.core.revision import TREATMENT
from benchwright.executors.observer import Observer
from benchwright.kinds.base import Kind
from benchwright.kinds.spec.gather import SpecGatherer
from benchwright.kinds.spec.models import RuntimeGatherer, on_runtimes
from benchwright.kinds.spec.options import spec_options_of
from benchwright.kinds.spec.plan import SpecPlanner
from benchwright.kinds.spec.read.document import looks_like_one
from benchwright.kinds.spec.read.selection import selected
from benchwright.kinds.spec.read.specification import read_specification
from benchwright.kinds.spec.results.examination import OutputExaminer
from benchwright.kinds.spec.results.report import contribution
from benchwright.kinds.spec.setup import fetch, known_sums, lacking, missing_option, unobtainable
from benchwright.kinds.spec.spec_test import spec_of, with_spec
from benchwright.options.table import Options
from benchwright.plan.base import PlanContext, Planner
from benchwright.record.base import Gatherer, PlainGatherer
from benchwright.record.stream_file import Event
from benchwright.report.base import Contribution, Report


class SpecKind(Kind):
    """Reads specifications and lists of them."""

    name = "spec"
    fills_words = True
    probe_packages = ("benchprobe", "benchmodels")  # for models that run on our runtimes

    def recognises(self, target: str) -> bool:
        return os.path.isfile(target) and looks_like_one(target)

    def read(self, target: str, options: Options) -> list[Benchmark]:
        return selected(on_runtimes(read_specification(target, spec_options_of(options)), options), options)

    def with_arguments(self, benchmark: Benchmark, words: tuple[str, ...]) -> Benchmark:
        test = spec_of(benchmark)
        if test is None or not test.commands:
            return super().with_arguments(benchmark, words)
        return with_spec(benchmark, replace(test, arguments=(*test.arguments, shlex.join(words))))

    def with_programs(self, benchmark: Benchmark, programs: Mapping[str, str]) -> Benchmark:
        test = spec_of(benchmark)
        if test is None or not test.commands:
            return super().with_programs(benchmark, programs)
        return with_spec(benchmark, replace(test, programs={**test.programs, **programs}))

    def on_side(self, benchmark: Benchmark, side: str) -> Benchmark:
        """Each side has its own files."""
        test = spec_of(benchmark)
        if test is None:
            return benchmark
        if test.side is not None:
            remedy = "leave out --info, or --control and --treatment"
            raise InvalidInput("it already names a control", where="--info", remedy=remedy)
        env = benchmark.env | {"AIBENCH_TREATMENT_GROUP": "1" if side == TREATMENT else "0"}
        return with_spec(replace(benchmark, env=env), replace(test, side=side))

    def profiled(self, benchmark: Benchmark, folder: str) -> Benchmark | None:
        work = benchmark.workload
        return replace(benchmark, workload=replace(work, profile=True)) if isinstance(work, Model) else None

    def option_sorts(self, benchmark: Benchmark) -> tuple[str, ...]:
        """A test without a program is a model on our runtimes, once its file is fetched."""
        on_ours = (test := spec_of(benchmark)) is not None and not test.commands
        return (self.name, "model") if on_ours else (self.name,)

    def alternates(self, benchmark: Benchmark) -> bool:
        return _has_side(benchmark) or isinstance(benchmark.workload, Model)

    def ends_with_verdict(self, benchmark: Benchmark) -> bool:
        return _has_side(benchmark)

    def packages_for(self, benchmarks: Sequence[Benchmark]) -> tuple[str, ...]:
        on_ours = any(isinstance(b.workload, Model) for b in benchmarks)
        return self.probe_packages if on_ours else self.probe_packages[:1]

    def not_ready(self, benchmarks: Sequence[Benchmark], options: Options) -> dict[str, str]:
        return dict(lacking(_read(benchmarks)))

    def refused(self, benchmarks: Sequence[Benchmark]) -> dict[str, str]:
        return dict(unobtainable(_read(benchmarks)))

    def set_up(self, benchmarks: Sequence[Benchmark], options: Options, observer: Observer) -> dict[str, str] | None:
        return fetch(_read(benchmarks), observer)

    def refusal(self, benchmarks: Sequence[Benchmark], options: Options) -> BenchwrightError:
        wrong = next((found for b in _read(benchmarks) if (found := missing_option(b)) is not None), None)
        return wrong or super().refusal(benchmarks, options)

    def planner(self, context: PlanContext) -> Planner:
        return SpecPlanner(context)

    @cached_property
    def _examiner(self) -> OutputExaminer:
        return OutputExaminer()

    def examined(self, benchmark: Benchmark, job: Job) -> list[Event]:
        return self._examiner.examine(benchmark, job)

    def gatherer(self, benchmark: Benchmark) -> Gatherer:
        if isinstance(benchmark.workload, Model):
            return RuntimeGatherer(benchmark)

        return PlainGatherer() if (test := spec_of(benchmark)) is None else SpecGatherer(test)

    def code_files(self, benchmark: Benchmark) -> list[str]:
        test, work = spec_of(benchmark), benchmark.workload
        files = [work.file] if isinstance(work, Model) and work.file else []
        return files if test is None else [test.path, *files, *(p for p in test.programs.values() if os.path.isfile(p))]

    def known_sums(self, benchmarks: Sequence[Benchmark]) -> dict[str, str]:
        return known_sums(benchmarks)

    def report(self, report: Report) -> Contribution:
        return contribution(report)


def _read(benchmarks: Sequence[Benchmark]) -> list[Benchmark]:
    """Without those whose files could not be read."""
    return [benchmark for benchmark in benchmarks if benchmark.data]


def _has_side(benchmark: Benchmark) -> bool:
    """Whether it is the treatment or the control of `--info`."""
    return (test := spec_of(benchmark)) is not None and test.side is not None

"""The common part of scripts and model files: their models are planned, gathered and checked alike."""

from __future__ import annotations

from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark, Command, Script
from benchwright.core.model import DEFAULT_RUNTIME, Model, ModelScript
from benchwright.kinds.base import Kind
from benchwright.kinds.function_profile import with_functions_profiled
from benchwright.kinds.models.gathering.gather import LoopGatherer, ModelGatherer
from benchwright.kinds.models.plan import ModelPlanner
from benchwright.kinds.models.training import TrainingGatherer
from benchwright.options.table import Options
from benchwright.plan.base import PlanContext, Planner
from benchwright.record.base import Gatherer, PlainGatherer
from benchwright.report.base import Contribution, Report


class ModelsKind(Kind):
    """A script may also be measured by its loop, or as a whole."""

    probe_packages = ("benchprobe", "benchmodels")

    def option_sorts(self, benchmark: Benchmark) -> tuple[str, ...]:
        work = benchmark.workload
        if isinstance(work, Model):
            return ("zoo",) if work.zoo is not None else ("model",) if work.file is not None else ("models",)
        return ("models",) if isinstance(work, ModelScript) else ("script",)

    def alternates(self, benchmark: Benchmark) -> bool:
        return isinstance(benchmark.workload, Model | ModelScript) or bool(benchmark.parameters)

    def ends_with_verdict(self, benchmark: Benchmark) -> bool:
        """Of a script's own settings; the table of models says itself how they compare."""
        return bool(benchmark.parameters) and not isinstance(benchmark.workload, Model | ModelScript)

    def profiled(self, benchmark: Benchmark, folder: str) -> Benchmark | None:
        work = benchmark.workload
        if isinstance(work, Model):
            return replace(benchmark, workload=replace(work, profile=True))
        if isinstance(work, Script) and not work.training and benchmark.stop is None:
            # With a stop rule, a launch takes as long however slow it is.
            return with_functions_profiled(benchmark, work.words, work.cwd, folder)
        if isinstance(work, Command) and not work.shell:
            return with_functions_profiled(benchmark, work.argv, work.cwd, folder)
        return None

    def next_steps(self, benchmark: Benchmark, options: Options) -> list[str]:
        work = benchmark.workload
        if not isinstance(work, ModelScript):
            return []
        runtimes = ", ".join(options.runtimes or (DEFAULT_RUNTIME,))
        devices = f" (device {', '.join(options.devices)})" if options.devices else ""
        return [f"then each model it calls, on {runtimes}{devices}; list them with 'benchwright find'"]

    def planner(self, context: PlanContext) -> Planner:
        return ModelPlanner(context)

    def gatherer(self, benchmark: Benchmark) -> Gatherer:
        work = benchmark.workload
        if isinstance(work, Model):
            return ModelGatherer(work)
        if isinstance(work, Script):
            return TrainingGatherer() if work.training else LoopGatherer()
        return PlainGatherer()

    def report(self, report: Report) -> Contribution:
        from benchwright.kinds.models.report.sections import contribution

        return contribution(report)

    def code_files(self, benchmark: Benchmark) -> list[str]:
        work = benchmark.workload
        if isinstance(work, Model):
            return list(work.files)
        return [work.path] if isinstance(work, ModelScript) else []

"""The common part of scripts and model files: their models are planned, gathered and checked alike."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from benchmodels.settings import KEYS
from benchwright.artifacts.builds import INDUCTOR
from benchwright.core.benchmark import Benchmark, Command, Script
from benchwright.core.errors import InvalidInput
from benchwright.core.job import JobBuild
from benchwright.core.machine import Machine
from benchwright.core.model import DEFAULT_RUNTIME, Model, ModelScript
from benchwright.core.status import Reason
from benchwright.core.stop_rule import NEVER
from benchwright.kinds.base import Kind
from benchwright.kinds.function_profile import with_functions_profiled
from benchwright.kinds.models.build_names import all_labels, build_name
from benchwright.kinds.models.gather import LoopGatherer, ModelGatherer
from benchwright.kinds.models.training_script import TrainingGatherer
from benchwright.kinds.runtime_names import known_runtime
from benchwright.options.table import Options
from benchwright.plan.base import JobCommand, PlainPlanner, PlanContext, Planner
from benchwright.plan.placement import launches_of
from benchwright.plan.process_slots import ProcessSlot
from benchwright.record.base import Gatherer, PlainGatherer
from benchwright.report.base import Contribution, Report

# The command, environment and settings of processes that find or measure models.


_MODULE = ("-m", "benchmodels")
# Fields of a Model that are settings of benchmodels by the same name.
_SAME = tuple(name for name in Model.__struct_fields__ if name in KEYS)
_TORCH = ("torch",)
OF_COMPILERS = ("benchmodels.runtimes.parts.compile_imports",)
OF_EXPORTS = ("benchmodels.runtimes.parts.export_imports",)
_OF_ZOOS = {
    "transformers": ("transformers.modeling_utils", "transformers.models.auto.modeling_auto"),
    "timm": ("timm",),
    "torchvision": ("torchvision",),
    "diffusers": ("diffusers.models.modeling_utils",),
    "pyg": ("torch_geometric",),
}
WAIT_POLICY = "PASSIVE"  # spinning threads take cores from working ones


class ModelPlanner(PlainPlanner):
    """Plans models, scripts to search for models, training scripts, and plain scripts or commands."""

    def fewer_devices(self, benchmark: Benchmark, present: int) -> str:
        if isinstance(benchmark.workload, Model):
            return "--device cpu"
        return super().fewer_devices(benchmark, present)

    def why_skipped(self, benchmark: Benchmark) -> tuple[Reason, str] | None:
        work = benchmark.workload
        if isinstance(work, ModelScript) and work.failure is not None:
            return work.failure
        return super().why_skipped(benchmark)

    def why_no_turns(self, benchmark: Benchmark) -> str | None:
        if isinstance(benchmark.workload, Model | ModelScript):
            return "models of scripts cannot take turns yet"
        return None

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, launch: int | None) -> JobCommand:
        """benchmodels runs the script; threads and wait policy are set here, before any library is loaded."""
        work, context = benchmark.workload, self.context
        if isinstance(work, ModelScript):
            finding = discovery_settings(context.options, count_work=context.count_work)
            argv = (work.python, *_MODULE, work.path, *work.args)
            return JobCommand(argv, work.cwd, benchmark.env, probe=finding, warm=_TORCH)
        if isinstance(work, Script) and work.training:
            settings = {
                "models": {"mode": "train", "seed": context.options.seed, "stop_grace_s": context.options.stop_grace}
            }
            return JobCommand((work.python, *_MODULE, work.path, *work.args), work.cwd, benchmark.env, probe=settings)
        if not isinstance(work, Model):
            return super().command(benchmark, slot, job, launch)
        if benchmark.stop == NEVER:
            what = "never would call the model for ever: its calls have no end of their own"
            raise InvalidInput(
                what, where="--stop", remedy="write 100 (calls), 30s or 1%; for a script's training add --as training"
            )
        words = (work.script, *work.args) if work.script is not None else ()
        threads = _threads_of(work, benchmark, context.machine)
        env: dict[str, str | None] = {**thread_settings(threads)}
        if work.builds:
            # Its cache is kept with the other builds; a lean one is removed with the run's other temporary files.
            kept = f"{context.folder}/.barrier" if context.options.lean_cache else work.builds
            env["TORCHINDUCTOR_CACHE_DIR"] = f"{kept}/{INDUCTOR}"
        probe = _measuring_settings(work, benchmark.labels, threads, context.options.seed)
        probe["models"]["timeout_s"] = benchmark.timeout_s
        if context.options.lean_cache and (launch is None or launch + 1 == launches_of(benchmark, context.options)):
            probe["models"]["lean"] = True
        warm = imports_of(work) if known_runtime(work.runtime).forks else ()
        # A script may use the GPU whenever it likes; a zoo's models are built on the processor.
        ahead = bool(warm) and work.zoo is not None and work.device.startswith("cuda")
        argv = (work.python, *_MODULE, *words)
        can_be_made = work.script or work.file or work.zoo  # anything else is held by the process that asks for it
        build = _build_of(work, probe) if can_be_made and work.builds and not warm else None
        return JobCommand(
            argv,
            work.cwd,
            env | benchmark.env,
            probe=probe,
            warm=warm,
            ahead=ahead,
            build=build,
            check_timeout_s=work.check_timeout_s(benchmark.timeout_s),
        )


def imports_of(model: Model) -> tuple[str, ...]:
    """Modules to import before its process is forked. A script may set what the compiler reads when it is imported."""
    compiler = OF_COMPILERS if model.script is None and known_runtime(model.runtime).inductor else ()
    if model.zoo is None:
        return (*_TORCH, *compiler)
    return (*_TORCH, *_OF_ZOOS.get(model.zoo.partition(":")[0], ()), "benchmodels.zoo.zoo_loader", *compiler)


def _build_of(model: Model, probe: Mapping[str, Mapping[str, object]]) -> JobBuild:
    """The build of a module of torch, except from a file of another runtime."""
    from_torch = model.file is None or model.file.endswith(".pt2")
    only = {"models": {**probe["models"], "stops_after": model.stops_after or "ahead", "lean": False}}
    imports = (*imports_of(model), *(OF_EXPORTS if known_runtime(model.runtime).through_onnx else ()))
    return JobBuild(probe=only, warm=imports if from_torch else ())


def thread_settings(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "OMP_WAIT_POLICY": WAIT_POLICY}


def _threads_of(model: Model, benchmark: Benchmark, machine: Machine) -> int:
    """As requested, else one per core it may use."""
    return model.threads or len(benchmark.placement.cores or ()) or max(machine.cores, 1)


def discovery_settings(options: Options, *, count_work: bool) -> dict[str, object]:
    """The configuration of benchmodels in a process that finds the models of a script."""
    return {
        "models": {
            "mode": "discover",
            "max_depth": options.max_depth,
            "digest_weights": True,
            "weights_in_identity": options.weights,
            "count_work": count_work,
            "seed": options.seed,
        }
    }


def _measuring_settings(
    model: Model, labels: Mapping[str, str], threads: int, seed: int
) -> dict[str, dict[str, object]]:
    """The configuration of benchmodels in a process that measures one model."""
    same = {name: getattr(model, name) for name in _SAME}
    return {
        "models": {
            **same,
            "mode": "measure",
            "build_name": build_name(model, labels),
            "labels": all_labels(model, labels),
            "weights_digest": model.weights,
            "content_digest": model.content,
            "threads": threads,
            "seed": seed,
        }
    }


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

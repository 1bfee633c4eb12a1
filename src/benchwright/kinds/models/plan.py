"""The command, environment and settings of processes that find or measure models."""

from __future__ import annotations

from collections.abc import Mapping

from benchmodels.settings import KEYS
from benchwright.artifacts.builds import INDUCTOR
from benchwright.core.benchmark import Benchmark, Script
from benchwright.core.errors import InvalidInput
from benchwright.core.job import JobBuild
from benchwright.core.machine import Machine
from benchwright.core.model import Model, ModelScript
from benchwright.core.status import Reason
from benchwright.core.stop_rule import NEVER
from benchwright.kinds.models.build_names import all_labels, build_name
from benchwright.kinds.models.build_options import builds_from_onnx
from benchwright.options.table import Options
from benchwright.plan.base import JobCommand, PlainPlanner
from benchwright.plan.placement import launches_of
from benchwright.plan.process_slots import ProcessSlot

_MODULE = ("-m", "benchmodels")
# What benchmodels is told about a model under the name that it has here.
_SAME = tuple(name for name in Model.__struct_fields__ if name in KEYS)
# Others load a build instead of torch, and their memory is to be their own.
_COMPILING = ("torch-compile", "torch-compile-max-autotune", "torch-compile-cuda-graphs")
_MODULE_RUNTIMES = ("torch-eager", *_COMPILING)
_INDUCTOR = (*_COMPILING, "aot-inductor")
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

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, repeat: int | None) -> JobCommand:
        """benchmodels runs the script; threads and wait policy are set here, before any library is loaded."""
        work, context = benchmark.workload, self.context
        if isinstance(work, ModelScript):
            finding = _discovery_settings(context.options, count_work=context.count_work)
            argv = (work.python, *_MODULE, work.path, *work.args)
            return JobCommand(argv, work.cwd, benchmark.env, probe=finding, warm=_TORCH)
        if isinstance(work, Script) and work.training:
            settings = {
                "models": {"mode": "train", "seed": context.options.seed, "stop_grace_s": context.options.stop_grace}
            }
            return JobCommand((work.python, *_MODULE, work.path, *work.args), work.cwd, benchmark.env, probe=settings)
        if not isinstance(work, Model):
            return super().command(benchmark, slot, job, repeat)
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
        if context.options.lean_cache and (repeat is None or repeat + 1 == launches_of(benchmark, context.options)):
            probe["models"]["lean"] = True
        warm = imports_of(work) if work.runtime in _MODULE_RUNTIMES else ()
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
    """What can be imported before its process is forked. A script may set what the compiler reads when it is imported."""
    compiler = OF_COMPILERS if model.script is None and model.runtime in _INDUCTOR else ()
    if model.zoo is None:
        return (*_TORCH, *compiler)
    return (*_TORCH, *_OF_ZOOS.get(model.zoo.partition(":")[0], ()), "benchmodels.zoo.opening", *compiler)


def _build_of(model: Model, probe: Mapping[str, Mapping[str, object]]) -> JobBuild:
    """What is built is a module of torch, except from a file of another runtime."""
    from_torch = model.file is None or model.file.endswith(".pt2")
    only = {"models": {**probe["models"], "stops_after": model.stops_after or "ahead", "lean": False}}
    imports = (*imports_of(model), *(OF_EXPORTS if builds_from_onnx(model.runtime) else ()))
    return JobBuild(probe=only, warm=imports if from_torch else ())


def thread_settings(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "OMP_WAIT_POLICY": WAIT_POLICY}


def _threads_of(model: Model, benchmark: Benchmark, machine: Machine) -> int:
    """As requested, else one per core it may use."""
    return model.threads or len(benchmark.placement.cores or ()) or max(machine.cores, 1)


def _discovery_settings(options: Options, *, count_work: bool) -> dict[str, object]:
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

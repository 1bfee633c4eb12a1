"""What a process that finds or measures models is started with."""

from __future__ import annotations

from typing import Any

from benchwright.core.benchmark import Benchmark
from benchwright.core.machine import Machine
from benchwright.core.model import Model, ModelScript
from benchwright.plan.commands import JobCommand

_MODULE = ("-m", "benchmodels")
WAIT_POLICY = "PASSIVE"  # threads that spin while they wait take the cores of those that work


def model_command(benchmark: Benchmark, machine: Machine) -> JobCommand:
    """benchprobe's part runs the script; threads and how they wait are set here, before any library is loaded."""
    workload = benchmark.workload
    if isinstance(workload, ModelScript):
        return JobCommand((workload.python, *_MODULE, workload.path, *workload.args), workload.cwd, benchmark.env)
    assert isinstance(workload, Model)
    words = (workload.script, *workload.args) if workload.script is not None else ()
    env: dict[str, str | None] = {**thread_settings(threads_of(benchmark, machine))}
    if workload.builds:
        env["TORCHINDUCTOR_CACHE_DIR"] = f"{workload.builds}/inductor"  # what it compiled is kept with the other builds
    env |= benchmark.env
    return JobCommand((workload.python, *_MODULE, *words), workload.cwd, env)


def thread_settings(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "OMP_WAIT_POLICY": WAIT_POLICY}


def threads_of(benchmark: Benchmark, machine: Machine) -> int:
    """As asked, else one for each core it may use."""
    workload = benchmark.workload
    asked = workload.threads if isinstance(workload, Model) else None
    return asked or len(benchmark.placement.cores or ()) or max(machine.cores, 1)


def model_settings(benchmark: Benchmark, machine: Machine, seed: int, *, count_work: bool = False) -> dict[str, Any]:
    """benchprobe's configuration for it, under `models`; empty for other workloads."""
    workload = benchmark.workload
    if isinstance(workload, ModelScript):
        return {
            "models": {
                "mode": "discover",
                "max_depth": workload.options.max_depth,
                "weights": True,
                "weights_in_identity": workload.options.weights,
                "count_work": count_work,
                "seed": seed,
            }
        }
    if not isinstance(workload, Model):
        return {}
    return {
        "models": {
            "mode": "measure",
            "identity": workload.identity,
            "weights_digest": workload.weights,
            "content_digest": workload.content,
            "items": workload.items,
            "items_from": workload.items_from,
            "varying": [[list(each) for each in dimensions] for dimensions in workload.varying],
            "trust": workload.trust,
            "weights_in_identity": workload.weights_in_identity,
            "file": workload.file,
            "shapes": {name: list(shape) for name, shape in workload.shapes.items()},
            "max_depth": workload.max_depth,
            "runtime": workload.runtime,
            "device": "cuda" if workload.device.startswith("cuda") else workload.device,
            "precision": workload.precision,
            "threads": threads_of(benchmark, machine),
            "streams": workload.streams,
            "builds": workload.builds,
            "rebuild": workload.rebuild,
            "step_timeout_s": workload.step_timeout_s,
            "profile": workload.profile,
            "seed": seed,
        }
    }

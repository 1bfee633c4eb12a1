"""`benchwright.benchmark_model`: a model that this process holds, as the benchmarks of a run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from benchwright.app.launches.held_model import HeldModelExecutor
from benchwright.app.resolve import checked_launches
from benchwright.app.run import RunOrder
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.model import FoundInput
from benchwright.core.numbers.aggregates import workers_count
from benchwright.core.stop_rule import Warmup
from benchwright.executors.local import LocalExecutor
from benchwright.kinds.base import Resolved
from benchwright.kinds.models.benchmarks import (
    USUAL_STOP,
    USUAL_WARMUP,
    model_of,
    on_device,
    variant_name,
    variants,
    with_profile,
)
from benchwright.options.table import Options

if TYPE_CHECKING:
    from benchmodels.measure.here import HeldModel

HERE = "measured in the process that called benchmark_model, beside whatever else it holds"
SET_TO_EVAL = "set to eval() to be measured: it is in training mode"


def order_and_executor(order: RunOrder, model: Any, inputs: Any) -> tuple[RunOrder, HeldModelExecutor]:
    """The run of a model and the executor that measures it; InvalidInput if it is not a module of torch."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        raise InvalidInput(
            f"{type(model).__name__} is not a torch.nn.Module",
            where="benchmark_model",
            remedy="give a module, or run a script with benchwright.run",
        )
    from benchmodels.measure.here import described, held

    taken = held(model, inputs)
    try:
        told = described(taken)
    except TypeError as error:  # the inputs do not fit its forward
        raise InvalidInput(str(error), where="inputs", remedy="give what the model is called with") from None
    options = order.options
    benchmarks = _benchmarks(options, told, taken)
    interleave = len(benchmarks) > 1 if options.interleave is None else options.interleave
    name = options.name or str(told["class"])
    resolved = Resolved(
        benchmarks=tuple(benchmarks),
        options=checked_launches(replace(options, interleave=interleave, workers=workers_count(os.environ))),
        name=name,
    )
    return msgspec.structs.replace(order, resolved=resolved), HeldModelExecutor(taken, LocalExecutor())


def _benchmarks(options: Options, told: dict[str, Any], model: HeldModel) -> list[Benchmark]:
    from benchmodels.measure.here import is_measured_here

    name = options.name or str(told["class"])
    found: list[Benchmark] = []
    for runtime, device, precision in variants(options, device=told["device"]):
        workload = model_of(
            options,
            runtime=runtime,
            device=device,
            precision=precision,
            python=sys.executable,
            cwd=os.getcwd(),
            identity=told["identity"],
            weights=told["weights"],
            content=told["content"],
            class_=told["class"],
            parameters=told.get("parameters") or 0,
            inputs=msgspec.convert(told["inputs"], tuple[FoundInput, ...]),
            set_to_eval=bool(model.module.training),
        )
        benchmark = Benchmark(
            name=name + variant_name(workload),
            kind="script",
            workload=workload,
            source=name,
            placement=on_device(device),
            loop="latency",
            labels={"name": name},
            notes=(*((HERE,) if is_measured_here(runtime) else ()), *((SET_TO_EVAL,) if model.module.training else ())),
        )
        benchmark = options.applied(benchmark)
        found += with_profile(
            msgspec.structs.replace(
                benchmark,
                stop=benchmark.stop or USUAL_STOP,
                warmup=USUAL_WARMUP if benchmark.warmup == Warmup() else benchmark.warmup,
            )
        )
    return found

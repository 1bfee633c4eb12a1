"""`benchwright.benchmark_model`: a model that this process holds, as the benchmarks of a run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from benchwright.app.launches.held_model import HeldModelExecutor
from benchwright.app.resolve import settings_of
from benchwright.app.run import RunOrder
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.inputs.request import Request, Resolved
from benchwright.core.model import FoundInput, Model
from benchwright.core.stop_rule import Warmup
from benchwright.executors.local import LocalExecutor
from benchwright.kinds.models.benchmarks import (
    USUAL_STOP,
    USUAL_WARMUP,
    on_device,
    variant_name,
    variants,
    with_profile,
)
from benchwright.kinds.models.build_options import as_built

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
    request = order.request
    benchmarks = _benchmarks(request, told, taken)
    interleave = len(benchmarks) > 1 if request.interleave is None else request.interleave
    name = request.name or str(told["class"])
    resolved = Resolved(benchmarks=tuple(benchmarks), settings=settings_of(request, interleave), name=name)
    return msgspec.structs.replace(order, resolved=resolved), HeldModelExecutor(taken, LocalExecutor())


def _benchmarks(request: Request, told: dict[str, Any], model: HeldModel) -> list[Benchmark]:
    from benchmodels.measure.here import is_measured_here

    options, name = request.models, request.name or str(told["class"])
    found: list[Benchmark] = []
    for runtime, device, precision in variants(options, device=told["device"]):
        workload = as_built(
            Model(
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
                items=options.items,
                items_from=None if options.items is None else "--items",
                set_to_eval=bool(model.module.training),
                threads=options.threads,
                streams=options.streams,
                profile=options.profile,
                **options.of_builds(),
                builds=request.builds,
            )
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
        benchmark = request.options.applied(benchmark)
        found += with_profile(
            msgspec.structs.replace(
                benchmark,
                stop=benchmark.stop or USUAL_STOP,
                warmup=USUAL_WARMUP if benchmark.warmup == Warmup() else benchmark.warmup,
            )
        )
    return found

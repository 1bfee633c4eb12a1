"""ExecuTorch: torch's export as a `.pte` program, executed by XNNPACK as far as it can."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import tempfile
import warnings
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from types import ModuleType
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from benchmodels.arrays import to_array
from benchmodels.runtimes.base import (
    FP16,
    FP32,
    INT8_DYNAMIC,
    ArtifactFolder,
    Captured,
    OpTime,
    RuntimeOptions,
    Session,
    StepTimer,
    Times,
    Unsupported,
    slowest_first,
)
from benchmodels.runtimes.families import ArtifactRuntime
from benchmodels.runtimes.parts import torch_modules
from benchmodels.runtimes.parts.artifact import BuiltModel, by_name, in_order, write_artifact
from benchmodels.runtimes.parts.export import exporting, flat_model, numbered_inputs
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import (
    WARMUP_CALLS,
    ArtifactSession,
    add_time,
    closed,
    only_the_whole,
    port_names,
)
from benchmodels.types import Arrays, Details, ModelInputs, Module, Prepared, Tensor, Value

PROGRAM = "model.pte"
# ExecuTorch writes these to sys.stderr, not into its exceptions.
_OPERATOR = re.compile(r"failed at instruction [^\n]* in operator (\w+::\w+)")
_REASON = re.compile(r"Check failed \(.*\): (\S[^\n]*)")
METHOD = "forward"
DELEGATION = "delegation.json"
# ExecuTorch's events: a whole call, one of its own kernels, and those that merely enclose others.
WHOLE, KERNEL, AROUND = "Method::execute", "native_call_", ("OPERATOR_CALL", "DELEGATE_CALL")


class Delegation(NamedTuple):
    """How a program is divided. `operators`: the ones XNNPACK does not run."""

    delegates: int = 0
    delegated_nodes: int = 0
    other_nodes: int = 0
    operators: Sequence[str] = ()


class Executorch(ArtifactRuntime):
    """No bf16: XNNPACK does not take it, and the kernels that do accumulate in bfloat16 and are 100 times slower than eager.

    In fp16 the LayerNorm of 1.5.1 is wrong, which the output check finds.
    """

    name = "executorch"
    precisions = (FP32, FP16, INT8_DYNAMIC)
    packages = ("executorch",)
    build_packages = ("torch", "torchao")
    modules = ("executorch",)
    install = "'benchwright[executorch]'"
    cpu_only = True

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        return super().unavailable(options) or torch_modules.unavailable(options)

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        self.require_precision(options)
        torch = import_module("torch")
        with explaining("convert"), exporting():  # its imports take seconds, which belong to no step
            exir = import_module("executorch.exir")
            xnnpack = import_module("executorch.backends.xnnpack.partition.xnnpack_partitioner")
        as_int8 = options.precision == INT8_DYNAMIC
        with steps.step("export"), explaining("export"), exporting():
            flat = flat_model(captured, options._replace(precision=FP32) if as_int8 else options)
            # A program takes only one layout, and arrays come from a file in theirs.
            tensors = tuple(tensor.contiguous() for tensor in flat.tensors)
            program = torch.export.export(_contiguous(flat.module), tensors, strict=False)
        with steps.step("convert"), explaining("convert"), exporting():
            if as_int8:
                program = _quantized(torch, program, tensors)
            # Unchecked: there may be a kernel for an operator outside torch's core set.
            settings = exir.EdgeCompileConfig(_check_ir_validity=False)
            edge = exir.to_edge_transform_and_lower(
                program, partitioner=[xnnpack.XnnpackPartitioner()], compile_config=settings
            )
            delegation = _delegation(edge.exported_program().graph_module)
            lowered = edge.to_executorch()
            _require_kernels(lowered)
            with open(os.path.join(folder, PROGRAM), "wb") as program_file:
                lowered.write_to_file(program_file)
        precision = INT8_DYNAMIC if as_int8 else flat.precision
        write_artifact(folder, BuiltModel(PROGRAM, precision, numbered_inputs(flat), flat.outputs))
        with open(os.path.join(folder, DELEGATION), "w", encoding="utf-8") as file:
            json.dump(delegation._asdict(), file, indent=1)
        del program, edge, lowered
        self._try_out(folder, options, list(tensors))

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        with open(os.path.join(artifact.folder, DELEGATION), encoding="utf-8") as file:
            delegation = Delegation(**json.load(file))
        return ExecutorchSession(artifact, delegation, options)

    def _try_out(self, folder: str, options: RuntimeOptions, tensors: List[Tensor]) -> None:
        """Calls it once: only then does a kernel refuse, and only the log says which one and why."""
        log = StringIO()
        try:
            with redirect_stderr(log):
                session = self.load(ArtifactFolder(folder), options)
                session.run(tensors)
                session.close()
        except (RuntimeError, Unsupported) as error:
            raise refusal(log.getvalue(), error) from error


def refusal(log: str, error: Exception) -> Unsupported:
    """The log's explanation of the first call that failed with `error`."""
    operator, reason = _OPERATOR.search(log), _REASON.search(log)
    if operator is None:
        return error if isinstance(error, Unsupported) else Unsupported("first_run", str(error), kind="error")
    why = reason[1] if reason is not None else str(error)
    return Unsupported("first_run", f"unsupported operator {operator[1]}: {why}", operator[1])


def _contiguous(module: Module) -> Module:
    """With all weights in torch's default layout, which XNNPACK requires; a copy if one of them has another."""
    if all(tensor.is_contiguous() for tensor in [*module.parameters(), *module.buffers()]):
        return module
    made = copy.deepcopy(module)
    for tensor in [*made.parameters(), *made.buffers()]:
        tensor.data = tensor.data.contiguous()
    return made


def _quantized(torch: ModuleType, program: Any, tensors: Tuple[Tensor, ...]) -> Any:
    """Int8 weights for Linear layers, one scale per row; their inputs are quantised on the fly."""
    quantizers = import_module("executorch.backends.xnnpack.quantizer.xnnpack_quantizer")
    pt2e = import_module("torchao.quantization.pt2e.quantize_pt2e")

    class Quantizer(quantizers.XNNPACKQuantizer):  # type: ignore[name-defined,misc]
        def transform_for_annotation(self, model: Any) -> Any:
            return model  # theirs turns all numbers into floats, even those that indices are computed with

    settings = quantizers.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    prepared = pt2e.prepare_pt2e(program.module(), Quantizer().set_global(settings))
    prepared(*tensors)  # observes the weights
    made = pt2e.convert_pt2e(prepared)
    if not any("choose_qparams" in str(node.target) for node in made.graph.nodes):
        raise Unsupported("convert", "no Linear layer, so nothing to quantise to int8")
    return torch.export.export(made, tensors, strict=False)


def _delegation(graph_module: Any) -> Delegation:
    """How many nodes of a lowered graph XNNPACK runs, and which operators it does not."""
    delegated, delegates = 0, 0
    others: List[str] = []
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or getattr(node.target, "__name__", "") == "getitem":
            continue
        if "call_delegate" in str(node.target):
            part = getattr(graph_module, node.args[0].target).original_module
            delegated += sum(inner.op == "call_function" for inner in part.graph.nodes)
            delegates += 1
        else:
            schema = getattr(node.target, "_schema", None)
            others.append(str(node.target) if schema is None else str(schema.name))
    return Delegation(delegates, delegated, len(others), sorted(set(others)))


def _require_kernels(lowered: Any) -> None:
    """Unsupported if the package lacks a kernel that the program calls."""
    there = set(bindings()._get_operator_names())
    for plan in lowered.executorch_program.execution_plan:
        for each in plan.operators:
            if (f"{each.name}.{each.overload}" if each.overload else each.name) not in there:
                text = f"unsupported operator {each.name}: neither XNNPACK nor a portable kernel supports it"
                raise Unsupported("convert", text, each.name)


def bindings() -> ModuleType:
    """The native part alone: the package around it imports the exporter, which takes seconds and 130 MB."""
    import_module("torch")  # it links to torch's libraries
    try:
        return import_module("executorch.extension.pybindings._C")
    except ModuleNotFoundError:
        return import_module("executorch.extension.pybindings.portable_lib")


class ExecutorchSession(ArtifactSession):
    """One loaded method. Each call copies the inputs into the program's memory; outputs stay there."""

    def __init__(self, artifact: BuiltModel, delegation: Delegation, options: RuntimeOptions) -> None:
        super().__init__(artifact, options)
        self._native = bindings()
        self._delegation = delegation
        # The process has one pool, to which delegates keep a pointer: set before loading anything.
        if self._native._threadpool_get_thread_count() != options.threads:
            self._native._unsafe_reset_threadpool(options.threads)
        self._method = self._native._load_program(artifact.model).load_method(METHOD)
        self._call = self._method.__call__
        self.provider = "XNNPACK" if delegation.delegates else "portable kernels"
        self.details: Details = {
            "threads": self._native._threadpool_get_thread_count(),
            "wait_policy": "pthreadpool",
            "delegates": delegation.delegates,
            "delegated_nodes": delegation.delegated_nodes,
            "other_nodes": delegation.other_nodes,
            "other_operators": list(delegation.operators),
        }
        if options.streams > 1:
            self.details["streams"] = "serialised: a call holds the GIL"

    def prepare(self, inputs: ModelInputs) -> Any:
        torch = import_module("torch")
        arrays = in_order(inputs, port_names(self._artifact), self._artifact)
        return [
            torch.tensor(array).to(getattr(torch, each.dtype)).contiguous()
            for array, each in zip(arrays, self._artifact.inputs)
        ]

    def run(self, prepared: Prepared) -> Any:
        return self._call(prepared, False)  # False: outputs are not copied

    def outputs(self, result: Value) -> Arrays:
        # Before its outputs, a program returns the inputs that it changes.
        own = result[max(0, len(result) - len(self._artifact.outputs)) :]
        return by_name([to_array(tensor) for tensor in own], (), self._artifact)

    def new_stream(self) -> Session:
        return ExecutorchSession(self._artifact, self._delegation, self._options)

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        program = self._native._load_program(self._artifact.model, enable_etdump=True)
        method = program.load_method(METHOD)
        if not program.has_etdump():
            return only_the_whole(lambda: self.run(prepared), calls)  # built without its event tracer
        for _ in range(WARMUP_CALLS + calls):
            method(prepared, False)
        folder = tempfile.mkdtemp(prefix="benchprobe-profile-")
        try:
            path = os.path.join(folder, "model.etdp")
            program.write_etdump_result_to_file(path, None)
            return read_profile(path, calls)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        self._method = None
        self._call = closed


def read_profile(path: str, calls: int) -> List[OpTime]:
    """The last `calls` runs of each type of kernel, and the rest of a call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # by its own imports
        devtools = import_module("executorch.devtools")
        blocks = devtools.Inspector(etdump_path=path).event_blocks
    times: Times = {}
    whole = 0.0
    for block in blocks:
        for event in block.events:
            if block.name != "Execute" or event.perf_data is None:
                continue
            runs = [ms / 1e3 for ms in event.perf_data.raw[-calls:]]
            if event.name == WHOLE:
                whole += sum(runs)
            elif event.name not in AROUND:
                add_time(times, (_kind(event.name), ""), sum(runs), len(runs))
    if not times:
        raise Unsupported("run", "ExecuTorch's event tracer reported no operator", kind="error")
    rest = whole - sum(seconds for seconds, _ in times.values())
    if rest > 0:
        times["the runtime", ""] = (rest, float(calls))
    return slowest_first(times, calls)


def _kind(name: str) -> str:
    """`native_call_addmm.out` is addmm; XNNPACK numbers its operators of one kind: `Transpose (ND, X32) #2`."""
    if name.startswith(KERNEL):
        return name[len(KERNEL) :].partition(".")[0]
    return name.rpartition(" #")[0] or name

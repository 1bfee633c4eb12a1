"""IREE: the ONNX export as MLIR, compiled ahead of time for this processor."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from importlib import import_module
from math import prod
from types import ModuleType
from typing import Any, Dict, List, Mapping, Sequence, Tuple
from weakref import WeakSet

from benchmodels.runtimes.base import (
    BF16,
    FP16,
    FP32,
    Captured,
    OpTime,
    RuntimeOptions,
    Session,
    StepTimer,
    Unsupported,
)
from benchmodels.runtimes.families import OnnxFamily
from benchmodels.runtimes.parts.artifact import BuiltModel, by_name, without_bits, write_artifact
from benchmodels.runtimes.parts.compiled_code import cpu_kind
from benchmodels.runtimes.parts.onnx_graph import (
    described_inputs,
    graph_inputs,
    output_names,
    value_type,
    weights_precision,
)
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import WARMUP_CALLS, ArtifactSession, without_warmup
from benchmodels.types import Array, Arrays, Details, ModelInputs, Prepared, Tensor, Value

FLAGS = (
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    # The default silently turns float64 into float32.
    "--iree-input-demote-f64-to-f32=false",
)
OLDEST_OPSET = 17  # the oldest that IREE's importer supports; older files are converted
SMALL = 100  # weights with fewer elements become constants of the program
LARGE = 1 << 28  # models with more weights are inspected without reading these into memory
# Only this error is about an operator; others merely show where in the model the compiler failed.
_NOT_LEGAL = re.compile(r"\berror: failed to legalize operation '([\w.]+)'([^\n]*)")
MODULE, WEIGHTS, SCOPE, FUNCTION = "model.vmfb", "model.irpa", "model", "main_graph"
OUTPUT_TYPES = "output_types.json"  # the program cannot tell: it has no unsigned integers
PATIENCE_S = 600.0
# numpy type → type of IREE's buffers, and its name in IREE's tools.
TYPES = {
    "float32": ("FLOAT_32", "f32"),
    "float64": ("FLOAT_64", "f64"),
    "float16": ("FLOAT_16", "f16"),
    "bfloat16": ("BFLOAT_16", "bf16"),
    "int64": ("SINT_64", "si64"),
    "int32": ("SINT_32", "si32"),
    "int16": ("SINT_16", "si16"),
    "int8": ("SINT_8", "si8"),
    "uint8": ("UINT_8", "ui8"),
    "bool": ("BOOL_8", "i1"),
}
_DISPATCH = re.compile(r"(?:_dispatch|_encoding)_\d+_(\w+?)(?:_(?:\d+|D)(?:x|_|$)|_b?[fi]\d+|$)")


class Iree(OnnxFamily):
    """Weights lie in a file beside the compiled program. One thread runs without workers, more use a pool."""

    name = "iree"
    precisions = (FP32, BF16, FP16)
    packages = ("iree-base-runtime", "iree-base-compiler")
    modules = ("iree.compiler", "iree.runtime")
    install = "'benchwright-runtimes[iree]'"
    cpu_only = True

    def depends_on(self, options: RuntimeOptions) -> Details:
        """Its code is for one kind of processor, and for any number of threads."""
        return {"cpu": cpu_kind(), "flags": list(FLAGS)}

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        self.require_precision(options)
        with self.exported(captured, folder, options, steps) as exported:
            if exported.precision == BF16:
                _check_types(exported.path)
            between = os.path.dirname(exported.path)
            _convert(exported.path, between, folder, steps)
            _compile(between, folder, steps)
        write_artifact(folder, BuiltModel(MODULE, exported.precision, exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        self.require_unconverted(options)
        self.require_onnx()
        onnx = import_module("onnx")
        with self.scratch(folder) as between:
            with explaining("convert"):
                model = onnx.load(path, load_external_data=False)
                _set_shapes(graph_inputs(model), shapes)
                model.graph.name = FUNCTION
                own = os.path.join(between, "model.onnx")
                onnx.save(model, own)
            _convert(own, between, folder, steps, os.path.dirname(os.path.abspath(path)))
            _compile(between, folder, steps)
        write_artifact(
            folder, BuiltModel(MODULE, weights_precision(model), described_inputs(model), output_names(model))
        )

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        return IreeSession(artifact, options)


def _convert(path: str, between: str, folder: str, steps: StepTimer, data_folder: str = "") -> None:
    """Step "convert": model.mlir, the weights in IREE's own archive, and the types of the outputs."""
    onnx = import_module("onnx")
    importer = import_module("iree.compiler.tools.import_onnx.__main__")
    arguments = [path, "-o", os.path.join(between, "model.mlir"), "--externalize-params", f"--params-scope={SCOPE}"]
    arguments += ["--save-params-to", os.path.join(folder, WEIGHTS), f"--num-elements-threshold={SMALL}"]
    with steps.step("convert"), explaining("convert"):
        model = onnx.load(path, load_external_data=False)
        _check_names(model.graph.initializer)
        with open(os.path.join(folder, OUTPUT_TYPES), "w", encoding="utf-8") as file:
            json.dump([value_type(each) for each in model.graph.output], file)
        opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), OLDEST_OPSET)
        if opset < OLDEST_OPSET:
            arguments.append(f"--opset-version={OLDEST_OPSET}")
        elif sum(prod(each.dims) for each in model.graph.initializer) > LARGE:
            arguments.append("--large-model")
            _read_small(model, data_folder or between)
            onnx.save(model, path)
        parsed = importer.parse_arguments(arguments)
        parsed.data_dir = data_folder or between  # as an argument it would become a Path, which onnx refuses
        importer.main(parsed)


def _check_types(path: str) -> None:
    """A bfloat16 convolution may be exported with float32 weights, which is not valid ONNX but which IREE accepts."""
    onnx = import_module("onnx")
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:  # of several kinds
        found = re.search(r"op_type:\s*(\w+)", str(error))
        text = f"its export to bfloat16 is not valid ONNX: {str(error).strip().splitlines()[0][:300]}"
        raise Unsupported("convert", text, found.group(1) if found else None) from None


def _compile(between: str, folder: str, steps: StepTimer) -> None:
    """Step "compile", in a separate program, which may crash."""
    tools = import_module("iree.compiler.tools")
    with steps.step("compile"), explaining("compile"):
        try:
            tools.compile_file(
                os.path.join(between, "model.mlir"),
                input_type="onnx",
                target_backends=["llvm-cpu"],
                output_file=os.path.join(folder, MODULE),
                extended_diagnostics=True,  # name the operator
                extra_args=list(FLAGS),
            )
        except tools.CompilerToolError as error:
            raise _explained(str(error)) from None


def _explained(said: str) -> Unsupported:
    """The operator or the first error in the compiler's long diagnostics."""
    match = _NOT_LEGAL.search(said)
    if match:
        named = re.search(r"\"onnx\.(\w+)\"", match.group(2))
        operator = named.group(1) if named else match.group(1)
        return Unsupported("compile", f"unsupported operator {operator}: IREE has no lowering for it", operator)
    code = re.search(r"^Error code: (-?\d+)", said, re.MULTILINE)
    if code and int(code.group(1)) < 0:
        return Unsupported("compile", f"iree-compile was killed by {_signal(-int(code.group(1)))}", kind="error")
    found = re.search(r"\berror: ([^\n]{1,300})", said)
    return Unsupported("compile", f"iree-compile: {found.group(1) if found else said[:300]}", kind="error")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _check_names(weights: Sequence[Tensor]) -> None:
    """The importer writes ":" in a name as "_", which may merge two weights."""
    names: List[str] = [each.name.replace(":", "_") for each in weights]
    if len(set(names)) != len(names):
        raise Unsupported("convert", "two weights have names that IREE cannot tell apart", kind="error")


def _read_small(model: Any, data_folder: str) -> None:
    """The importer needs the small weights even if the large ones are not read into memory."""
    onnx = import_module("onnx")
    for each in model.graph.initializer:
        if each.data_location == onnx.TensorProto.EXTERNAL and prod(each.dims) < SMALL:
            onnx.external_data_helper.load_external_data_for_tensor(each, data_folder)
            each.data_location = onnx.TensorProto.DEFAULT
            del each.external_data[:]


def _set_shapes(inputs: Sequence[Any], shapes: Mapping[str, Sequence[int]]) -> None:
    for each in inputs:
        for dimension, size in zip(each.type.tensor_type.shape.dim, shapes.get(each.name, ())):
            dimension.dim_value = size


class IreeInputs:
    """Inputs on the device, as they are passed; `arrays`: the same on the host."""

    def __init__(self, arguments: Any, arrays: Sequence[Array]) -> None:
        self.arguments = arguments
        self.arrays = arrays


class IreeSession(ArtifactSession):
    """A program in a context of its own: two threads may not call one context at once.

    IREE's buffers do not hold their device, and releasing one after its device crashes or hangs the process. So the session
    releases inputs and outputs itself, whoever still refers to them.
    """

    def __init__(self, artifact: BuiltModel, options: RuntimeOptions) -> None:
        self._prepared: WeakSet[IreeInputs] = WeakSet()
        super().__init__(artifact, options)
        self._runtime = import_module("iree.runtime")
        unknown = [each.dtype for each in artifact.inputs if each.dtype not in TYPES]
        if unknown:
            raise Unsupported("load", f"IREE takes no {unknown[0]}")
        self._device = _device(self._runtime, options)
        self._context, self._function = _loaded(self._runtime, artifact, self._device)
        self._invoke = self._context.invoke
        self._output_types = _output_types(artifact)
        self._results = self._runtime.VmVariantList(len(artifact.outputs))
        self.provider = _driver(options)
        workers = "blocks" if options.threads > 1 else "none: the caller computes"
        self.details: Details = {"threads": options.threads, "wait_policy": workers}
        if self.precision in (BF16, FP16):
            self.details["computes_in"] = f"{self.precision}, products accumulated in float32"

    def prepare(self, inputs: ModelInputs) -> IreeInputs:
        arrays = self.typed_inputs(inputs)
        arguments = self._runtime.VmVariantList(len(arrays))
        for array, each in zip(arrays, self._artifact.inputs):
            arguments.push_ref(self._placed(array, each.dtype))
        prepared = IreeInputs(arguments, arrays)
        self._prepared.add(prepared)
        return prepared

    def run(self, prepared: Prepared) -> Any:
        self._invoke(self._function, prepared.arguments, self._results)
        return self  # holds the outputs

    def outputs(self, result: Value) -> Arrays:
        views = [result._results.get_as_object(i, self._runtime.HalBufferView) for i in range(len(result._results))]
        arrays = [self._array(view, kind) for view, kind in zip(views, self._output_types)]
        return by_name(arrays, self._artifact.outputs, self._artifact)

    def new_stream(self) -> Session:
        """Divides the threads among the callers: callers that share workers are slower than one alone."""
        threads = max(1, self._options.threads // max(1, self._options.streams))
        self.details["threads_per_stream"] = threads
        return IreeSession(self._artifact, self._options._replace(threads=threads))

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        """From IREE's command-line tools: its Python package cannot profile."""
        folder = tempfile.mkdtemp(prefix="benchprobe-profile-")
        try:
            return read_profile(self._recorded(prepared, calls, folder), calls)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        for each in self._prepared:
            each.arguments = None
        self._results = None
        self._invoke = self._function = self._context = None
        self._device = None  # last

    def __del__(self) -> None:
        self.close()

    def _placed(self, array: Array, dtype: str) -> Any:
        rt = self._runtime
        return self._device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
            device=self._device,
            buffer=array,
            element_type=getattr(rt.HalElementType, TYPES[dtype][0]),
        )

    def _array(self, view: Any, kind: str) -> Array:
        numpy = import_module("numpy")
        dtype = numpy.dtype("uint16" if kind == "bfloat16" else kind)
        if dtype.itemsize != self._runtime.HalElementType.dense_byte_count(view.element_type):
            raise Unsupported("first_run", f"an output is {view.element_type}, not {kind}", kind="error")
        return without_bits(view.map().asarray(view.shape, dtype), kind)

    def _recorded(self, prepared: Prepared, calls: int, folder: str) -> List[Details]:
        """All dispatches, in chronological order."""
        bundle, arguments = os.path.join(folder, "calls.ireeprof"), []
        for index, (array, each) in enumerate(zip(prepared.arrays, self._artifact.inputs)):
            path = os.path.join(folder, f"{index}.bin")
            array.tofile(path)
            shape = "".join(f"{size}x" for size in array.shape)
            arguments.append(f"--input={shape}{TYPES[each.dtype][1]}=@{path}")
        weights = os.path.join(self._artifact.folder, WEIGHTS)
        self._tool(
            "iree-benchmark-module",
            f"--device={self.provider}",
            *_flags(self._options),
            f"--module={self._artifact.model}",
            f"--parameters={SCOPE}={weights}",
            f"--function={FUNCTION}",
            *arguments,
            f"--benchmark_min_time={WARMUP_CALLS + calls}x",
            "--device_profiling_mode=host-execution,executable-metadata",
            f"--device_profiling_output={bundle}",
        )
        said = self._tool("iree-profile", "dispatch", "--dispatch_events", "--format=jsonl", bundle)
        events = [json.loads(line) for line in said.splitlines()]
        found = [event for event in events if event["type"] == "host_dispatch_event" and event["valid"]]
        return sorted(found, key=lambda event: int(event["start_host_time_ns"]))

    def _tool(self, name: str, *arguments: str) -> str:
        libraries = import_module("iree._runtime_libs")
        path = os.path.join(os.path.dirname(str(libraries.__file__)), name)
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise Unsupported("run", f"{name}: {last[0]}", kind="error")
        return done.stdout


def read_profile(events: Sequence[Details], calls: int) -> List[OpTime]:
    """From the dispatches; one that is used in several places has one name."""
    runs: Dict[Tuple[str, str], List[float]] = {}
    for event in events:
        key = str(event["key"])
        runs.setdefault((kind_of(key), key.rpartition("$async_")[2].strip("_")), []).append(event["duration_ns"] / 1e9)
    return without_warmup(runs, calls)


def kind_of(key: str) -> str:
    """`main_graph$async_dispatch_3_matmul_like_32x256x256_f32` → matmul_like."""
    found = _DISPATCH.search(key)
    return found.group(1) if found else key


def _driver(options: RuntimeOptions) -> str:
    return "local-task" if options.threads > 1 else "local-sync"


def _flags(options: RuntimeOptions) -> List[str]:
    """That many workers, which do not spin."""
    if options.threads == 1:
        return []
    return [f"--task_topology_group_count={options.threads}", "--task_worker_spin_us=0"]


def _device(runtime: ModuleType, options: RuntimeOptions) -> Any:
    if options.threads > 1:
        runtime.flags.parse_flags(*_flags(options))
    # A driver's number of workers is fixed on creation; a cached one may have another number.
    binding = import_module("iree.runtime._binding")
    return binding.create_hal_driver(_driver(options)).create_default_device()


def _output_types(artifact: BuiltModel) -> List[str]:
    with open(os.path.join(artifact.folder, OUTPUT_TYPES), encoding="utf-8") as file:
        found: List[str] = json.load(file)
    return found


def _loaded(runtime: ModuleType, artifact: BuiltModel, device: Any) -> Tuple[Any, Any]:
    """A context with the program in it, and its function."""
    instance = runtime.VmInstance()
    weights = runtime.ParameterIndex()
    weights.load(os.path.join(artifact.folder, WEIGHTS))
    parameters = runtime.create_io_parameters_module(instance, weights.create_provider(scope=SCOPE))
    program = runtime.VmModule.mmap(instance, artifact.model)
    context = runtime.VmContext(instance, [runtime.create_hal_module(instance, device), parameters, program])
    function = program.lookup_function(FUNCTION)
    if function is None:
        raise Unsupported("load", f"{artifact.model} has no function {FUNCTION}", kind="error")
    return context, function

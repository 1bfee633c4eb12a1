"""A session of IREE: inputs lie on its device, one invocation of the exported function, outputs stay until they are asked for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from importlib import import_module
from typing import Any, Dict, List, Sequence, Tuple
from weakref import WeakSet

from benchmodels.runtimes.artifact import Artifact, as_type, by_name, in_order, without_bits
from benchmodels.runtimes.base import BF16, FP16, OpTime, Options, Session, Unsupported, slowest_first

MODULE, WEIGHTS, SCOPE, FUNCTION = "model.vmfb", "model.irpa", "model", "main_graph"
OUTPUT_TYPES = "output_types.json"  # a program does not know them all: it has no unsigned numbers
WARMUP_CALLS = 3
PATIENCE_S = 600.0
# Types of numpy → of IREE's buffers, and as its tools write them.
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


class Prepared:
    """Inputs on the device, as they are passed; `arrays`: the same on the host."""

    def __init__(self, arguments: Any, arrays: Sequence[Any]) -> None:
        self.arguments = arguments
        self.arrays = arrays


class IreeSession:
    """A program in a context of its own: contexts may not be called by two threads at once.

    What lies on a device must not outlive it: IREE's buffers do not hold their device, and one that is released after it
    crashes the process, or hangs it. So the session releases inputs and outputs itself, whoever still has a hand on them.
    """

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, artifact: Artifact, options: Options) -> None:
        self._prepared: WeakSet[Prepared] = WeakSet()
        self._runtime: Any = import_module("iree.runtime")
        self._artifact = artifact
        self._options = options
        unknown = [each.dtype for each in artifact.inputs if each.dtype not in TYPES]
        if unknown:
            raise Unsupported("load", f"IREE is given no {unknown[0]}")
        self._device = _device(self._runtime, options)
        self._context, self._function = _loaded(self._runtime, artifact, self._device)
        self._invoke = self._context.invoke
        self._output_types = _output_types(artifact)
        self._results = self._runtime.VmVariantList(len(artifact.outputs))
        self.provider = _driver(options)
        self.precision = artifact.precision
        workers = "blocks" if options.threads > 1 else "none: the caller computes"
        self.details: Dict[str, Any] = {"threads": options.threads, "wait_policy": workers}
        if self.precision in (BF16, FP16):
            self.details["computes_in"] = f"{self.precision}, whose products are summed in float32"

    def prepare(self, inputs: Any) -> Prepared:
        given = self._artifact.inputs
        arrays = [
            as_type(array, each.dtype)
            for array, each in zip(in_order(inputs, [each.port for each in given], self._artifact), given)
        ]
        arguments = self._runtime.VmVariantList(len(arrays))
        for array, each in zip(arrays, given):
            arguments.push_ref(self._placed(array, each.dtype))
        prepared = Prepared(arguments, arrays)
        self._prepared.add(prepared)
        return prepared

    def run(self, prepared: Any) -> Any:
        self._invoke(self._function, prepared.arguments, self._results)
        return self  # which has the outputs

    def outputs(self, result: Any) -> Dict[str, Any]:
        views = [result._results.get_as_object(i, self._runtime.HalBufferView) for i in range(len(result._results))]
        arrays = [self._array(view, kind) for view, kind in zip(views, self._output_types)]
        return by_name(arrays, self._artifact.outputs, self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return False  # IREE does not write to what it is given

    def new_stream(self) -> Session:
        """The threads are divided among the callers: those who share workers are slower than one of them alone."""
        threads = max(1, self._options.threads // max(1, self._options.streams))
        self.details["threads_per_stream"] = threads
        return IreeSession(self._artifact, self._options._replace(threads=threads))

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        """By IREE's own programs, in a process of their own: its Python package cannot receive a profile."""
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

    def _placed(self, array: Any, dtype: str) -> Any:
        rt = self._runtime
        return self._device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
            device=self._device,
            buffer=array,
            element_type=getattr(rt.HalElementType, TYPES[dtype][0]),
        )

    def _array(self, view: Any, kind: str) -> Any:
        numpy: Any = import_module("numpy")
        dtype = numpy.dtype("uint16" if kind == "bfloat16" else kind)
        if dtype.itemsize != self._runtime.HalElementType.dense_byte_count(view.element_type):
            raise Unsupported("first_run", f"an output is {view.element_type}, not {kind}", kind="error")
        return without_bits(view.map().asarray(view.shape, dtype), kind)

    def _recorded(self, prepared: Any, calls: int, folder: str) -> List[Dict[str, Any]]:
        """Each dispatch of the calls, in the order of time."""
        bundle, arguments = os.path.join(folder, "calls.ireeprof"), []
        for index, (array, each) in enumerate(zip(prepared.arrays, self._artifact.inputs)):
            path = os.path.join(folder, f"{index}.bin")
            array.tofile(path)
            shape = "".join(f"{size}x" for size in array.shape)
            arguments.append(f"--input={shape}{TYPES[each.dtype][1]}=@{path}")
        weights = os.path.join(os.path.dirname(self._artifact.model), WEIGHTS)
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
        libraries: Any = import_module("iree._runtime_libs")
        path = os.path.join(os.path.dirname(libraries.__file__), name)
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise Unsupported("run", f"{name}: {last[0]}", kind="error")
        return done.stdout


def read_profile(events: Sequence[Dict[str, Any]], calls: int) -> List[OpTime]:
    """Of each dispatch the last `calls` runs. One that is used in several places has one name."""
    runs: Dict[Tuple[str, str], List[float]] = {}
    for event in events:
        key = str(event["key"])
        runs.setdefault((kind_of(key), key.rpartition("$async_")[2].strip("_")), []).append(event["duration_ns"] / 1e9)
    times: Dict[Tuple[str, str], Tuple[float, float]] = {}
    for place, seconds in runs.items():
        kept = seconds[len(seconds) * WARMUP_CALLS // (WARMUP_CALLS + calls) :]
        times[place] = (sum(kept), len(kept))
    return slowest_first(times, calls)


def kind_of(key: str) -> str:
    """`main_graph$async_dispatch_3_matmul_like_32x256x256_f32` → matmul_like."""
    found = _DISPATCH.search(key)
    return found.group(1) if found else key


def _driver(options: Options) -> str:
    return "local-task" if options.threads > 1 else "local-sync"


def _flags(options: Options) -> List[str]:
    """So many workers, which do not spin."""
    if options.threads == 1:
        return []
    return [f"--task_topology_group_count={options.threads}", "--task_worker_spin_us=0"]


def _device(runtime: Any, options: Options) -> Any:
    if options.threads > 1:
        runtime.flags.parse_flags(*_flags(options))
    # Workers are counted when the driver is made; one that is kept from before may have another number of them.
    binding: Any = import_module("iree.runtime._binding")
    return binding.create_hal_driver(_driver(options)).create_default_device()


def _output_types(artifact: Artifact) -> List[str]:
    with open(os.path.join(os.path.dirname(artifact.model), OUTPUT_TYPES), encoding="utf-8") as file:
        found: List[str] = json.load(file)
    return found


def _loaded(runtime: Any, artifact: Artifact, device: Any) -> Tuple[Any, Any]:
    """A context with the program in it, and its function."""
    instance = runtime.VmInstance()
    weights = runtime.ParameterIndex()
    weights.load(os.path.join(os.path.dirname(artifact.model), WEIGHTS))
    parameters = runtime.create_io_parameters_module(instance, weights.create_provider(scope=SCOPE))
    program = runtime.VmModule.mmap(instance, artifact.model)
    context = runtime.VmContext(instance, [runtime.create_hal_module(instance, device), parameters, program])
    function = program.lookup_function(FUNCTION)
    if function is None:
        raise Unsupported("load", f"{artifact.model} has no function {FUNCTION}", kind="error")
    return context, function

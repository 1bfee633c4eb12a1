"""Apache TVM: the ONNX export as a relax module, compiled by LLVM into a library for this processor.

Its front end for torch.export knows fewer operators, and reads `x[:, -1]` from beyond the end of x; the one for ONNX does not.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from contextlib import contextmanager
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.runtimes.base import (
    FP32,
    Captured,
    OpTime,
    RuntimeOptions,
    Session,
    StepTimer,
    Times,
    Unsupported,
    slowest_first,
)
from benchmodels.runtimes.families import OnnxFamily
from benchmodels.runtimes.parts.artifact import ArtifactInput, BuiltModel, by_name, write_artifact
from benchmodels.runtimes.parts.compiled_code import cpu_kind
from benchmodels.runtimes.parts.onnx_graph import described_inputs, output_names, weights_precision
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import WARMUP_CALLS, ArtifactSession, SharedStream, add_time
from benchmodels.types import Array, Arrays, Details, ModelInputs, Module, Prepared, Tensor, Value

LIBRARY = "model.so"
COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")  # the ones TVM looks for
# How its front end reports an operator it does not know, or not in this form; group 1 is the operator.
_OPERATORS = (
    re.compile(r"operators are not supported for frontend ONNX: (\w+)"),
    re.compile(r"opset version \S+ of (\w+) not implemented"),
    re.compile(r"Missing outputs during conversion\. .* in (\w+)\."),
)
BIG_CORES = 1  # of TVM's modes of its pool: as many of the fastest cores as requested
NOT_TUNED = "none: TVM's default schedules, nearly all of them for one thread"


class RelaxModule(NamedTuple):
    """A relax module with its weights bound; inputs and outputs in order, named as in the ONNX file."""

    module: Module
    precision: str
    inputs: List[ArtifactInput]
    outputs: List[str]


class Tvm(OnnxFamily):
    """Fused, with constants folded, but not tuned, which would take hours."""

    name = "tvm"
    # Its float16 products accumulate in float16, which is wrong for large ones; few operators know bfloat16.
    precisions = (FP32,)
    packages = ("apache-tvm", "tvm")
    build_packages = ("apache-tvm-ffi", *OnnxFamily.build_packages)
    modules = ("tvm",)
    install = "'benchwright-runtimes[tvm]'"
    cpu_only = True

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        missing = super().unavailable(options)
        if missing is None and not any(
            map(shutil.which, (os.environ.get("CXX") or os.environ.get("CC") or "g++", *COMPILERS))
        ):
            return "tvm needs a C++ compiler to link its code: install g++, or set CXX"
        return missing

    def depends_on(self, options: RuntimeOptions) -> Details:
        """Its code is for one kind of processor, and for any number of threads."""
        return {"cpu": cpu_kind()}

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        self.require_precision(options)
        self.require_onnx()
        with self.exported(captured, folder, options, steps) as exported:
            _compile(_convert(exported.path, {}, steps).module, folder, steps)
        write_artifact(folder, BuiltModel(LIBRARY, exported.precision, exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        self.require_precision(options)
        self.require_onnx()
        converted = _convert(path, shapes, steps)
        _compile(converted.module, folder, steps)
        write_artifact(folder, BuiltModel(LIBRARY, converted.precision, converted.inputs, converted.outputs))

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        return TvmSession(tvm(), artifact, options)


def tvm() -> ModuleType:
    """TVM without torch, which it imports if installed; running a library does not need it."""
    if "torch" in sys.modules or "tvm" in sys.modules:
        return import_module("tvm")
    absent: Any = None  # blocks the import
    sys.modules["torch"] = absent
    try:
        return import_module("tvm")
    finally:
        del sys.modules["torch"]


def _convert(path: str, shapes: Mapping[str, Sequence[int]], steps: StepTimer) -> RelaxModule:
    """Step "convert"."""
    with steps.step("convert"), explaining("convert"), _naming_operators(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tvm()
        onnx = import_module("onnx")
        frontend = import_module("tvm.relax.frontend.onnx")
        model = onnx.load(path)
        module = frontend.from_onnx(model, {name: list(shape) for name, shape in shapes.items()})
        return RelaxModule(module, weights_precision(model), described_inputs(model), output_names(model))


def _compile(module: Module, folder: str, steps: StepTimer) -> None:
    """Step "compile": operators as loops, fused, and these as a shared library."""
    with steps.step("compile"), explaining("compile"):
        relax = import_module("tvm.relax")
        target = _host()
        with target:
            fused = relax.get_pipeline("zero")(module)  # the default of tvm.compile fuses nothing on a CPU
        tvm().compile(fused, target=target).export_library(os.path.join(folder, LIBRARY))


def _host() -> Any:
    """This processor with its reported features: a virtual machine may hide some that its model has."""
    codegen = import_module("tvm.target.codegen")
    features: Any = tvm().get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    described = {
        "kind": "llvm",
        "mtriple": codegen.llvm_get_system_triple(),
        "mcpu": codegen.llvm_get_system_cpu(),
        "mattr": sorted(f"{'+' if bool(has) else '-'}{name}" for name, has in features.items()),
    }
    return tvm().target.Target(described)


@contextmanager
def _naming_operators() -> Iterator[None]:
    """Turns the front end's complaints about operators into Unsupported."""
    try:
        yield
    except Exception as error:
        for pattern in _OPERATORS:
            found = pattern.search(str(error))
            if found is not None:
                operator = found.group(1)
                text = f"unsupported operator {operator}: {type(error).__name__}: {error}"
                raise Unsupported("convert", text, operator) from error
        raise


class TvmSession(ArtifactSession):
    """A virtual machine that calls the functions of a library. Callers share its weights, each with a machine of its own."""

    provider = "LLVM CPU"

    def __init__(self, tvm: ModuleType, artifact: BuiltModel, options: RuntimeOptions) -> None:
        super().__init__(artifact, options)
        self._tvm = tvm
        self.details: Details = {
            "threads": _set_threads(tvm, options.threads),
            "wait_policy": "passive",
            "cpu_pinning": False,
            "tuning": NOT_TUNED,
        }
        self._library = tvm.runtime.load_module(artifact.model)
        self._main = self._machine()["main"]

    def prepare(self, inputs: ModelInputs) -> List[Any]:
        arrays = self.typed_inputs(inputs)
        return [self._tensor(array, each.dtype) for array, each in zip(arrays, self._artifact.inputs)]

    def run(self, prepared: Prepared) -> Any:
        return self._main(*prepared)

    def outputs(self, result: Value) -> Arrays:
        tensors = [result] if isinstance(result, self._tvm.runtime.Tensor) else list(result)
        return by_name([_array(tensor) for tensor in tensors], (), self._artifact)

    def new_stream(self) -> Session:
        main = self._machine()["main"]
        return SharedStream(self, lambda prepared: main(*prepared))

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        """From a machine with a hook before and after each function."""
        machine, times = self._machine(), _Times()
        machine.set_instrument(times.note)
        main = machine["main"]
        for number in range(WARMUP_CALLS + calls):
            if number == WARMUP_CALLS:
                times.clear()
            main(*prepared)
        return slowest_first(times.seconds, calls)

    def close(self) -> None:
        self._main = self._library = None

    def _machine(self) -> Any:
        machines = import_module("tvm.runtime.vm")
        return machines.VirtualMachine(self._library, self._tvm.cpu())

    def _tensor(self, value: Array, dtype: str) -> Any:
        if dtype == "bfloat16":
            value = value.view(import_module("ml_dtypes").bfloat16)
        return self._tvm.runtime.tensor(value)


class _Times:
    """Seconds and calls of each function, without those it calls in turn."""

    def __init__(self) -> None:
        self.seconds: Times = {}
        self._began: List[float] = []
        self._inner: List[float] = []

    def clear(self) -> None:
        self.seconds.clear()

    def note(self, function: Any, symbol: Any, before: bool, result: Value, *arguments: Any) -> int:
        if before:
            self._inner.append(0.0)
            self._began.append(perf_counter())
            return 0
        spent = perf_counter() - self._began.pop()
        own = spent - self._inner.pop()
        if self._inner:
            self._inner[-1] += spent
        add_time(self.seconds, _place(str(symbol)), own)
        return 0  # continue


def _set_threads(tvm: ModuleType, threads: int) -> int:
    """The actual size of its pool: TVM uses no more threads than there are processors."""
    # Read when a thread first uses its pool, as those of streams will.
    os.environ["TVM_NUM_THREADS"] = str(threads)
    os.environ["TVM_BIND_THREADS"] = "0"  # bound to the first processors, it would compete with others there
    os.environ["TVM_THREAD_POOL_SPIN_COUNT"] = "0"  # spinning threads occupy cores that others need
    tvm.get_global_func("runtime.config_threadpool")(BIG_CORES, threads)
    return int(tvm.get_global_func("runtime.NumThreads")())


def _place(symbol: str) -> Tuple[str, str]:
    """`fused_matmul12_add3` is a fused_matmul_add; the machine's own functions have only a type."""
    if symbol.startswith("vm."):
        return symbol, ""
    return re.sub(r"\d+(?=_|$)", "", symbol), symbol


def _array(tensor: Tensor) -> Array:
    """A copy; bfloat16 as float32."""
    array = tensor.numpy()
    return array.astype("float32") if array.dtype.name == "bfloat16" else array

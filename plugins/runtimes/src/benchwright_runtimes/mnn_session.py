"""Sessions of MNN: its module for a single caller, its interpreter for several and for profiles."""

from __future__ import annotations

import os
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from benchmodels.runtimes.base import OpTime, RuntimeOptions, Session, Times, Unsupported, slowest_first
from benchmodels.runtimes.parts.artifact import BuiltModel, as_type, by_name, in_order
from benchmodels.runtimes.parts.sessions import (
    WARMUP_CALLS,
    ArtifactSession,
    SharedStream,
    add_time,
    closed,
    only_the_whole,
    port_names,
)
from benchmodels.types import Array, Arrays, Details, ModelInputs, Prepared, Tensor, Value

MOST_THREADS = 32  # MNN silently takes no more
# Types of inputs that its Python package can create → numpy's. Integers have 32 bits, and so have booleans.
TYPES = {"float": "float32", "int": "int32", "uint8": "uint8"}


class Port(NamedTuple):
    """An input or output. `dtype` as numpy or, for bfloat16, torch calls it; `rank`: its number of dimensions."""

    name: str
    dtype: str
    rank: int


class Conversion(NamedTuple):
    """What MNN's file does not say. `subgraphs`: it has branches or loops, which only a module can run."""

    outputs: Sequence[Port]
    subgraphs: bool


class MnnSession(ArtifactSession):
    """A call is the module's `onForward`: it returns when all outputs are computed, and they belong to the caller."""

    def __init__(self, artifact: BuiltModel, converted: Conversion, options: RuntimeOptions) -> None:
        super().__init__(artifact, options)
        self._mnn = import_module("MNN")
        self._converted = converted
        self._settings = settings_of(options)
        self._ports = port_names(artifact)
        network = import_module("MNN.nn")
        try:
            self._manager = network.create_runtime_manager((self._settings,))
            self._module = network.load_module_from_file(
                artifact.model, self._ports, [port.name for port in converted.outputs], runtime_manager=self._manager
            )
        except SystemError:  # raised by a bug in MNN; the reason is only printed
            raise Unsupported("load", f"MNN cannot load {artifact.model}; see the log", kind="error") from None
        self._types = [str(each.dtype).rpartition(".")[2] for each in self._module.get_info()["inputs"]]
        self.run: Callable[[Any], Any] = self._module.onForward
        self.details: Details = {
            "threads": self._settings["numThread"],
            "wait_policy": "yield",  # in a loop during a call; asleep between calls
            "precision_mode": self._settings["precision"],
            "memory_mode": self._settings["memory"],
        }

    def prepare(self, inputs: ModelInputs) -> Any:
        expr = import_module("MNN.expr")
        arrays = self.arrays(inputs)
        return [
            expr.const(array, list(array.shape), expr.NCHW, getattr(expr, kind))
            for array, kind in zip(arrays, self._types)
        ]

    def arrays(self, inputs: ModelInputs) -> List[Array]:
        """The inputs in MNN's types and in the order of its ports."""
        found = in_order(inputs, self._ports, self._artifact)
        return [_converted(array, kind, port) for array, kind, port in zip(found, self._types, self._ports)]

    def outputs(self, result: Value) -> Arrays:
        return self.named([each.read() for each in result])

    def named(self, arrays: Sequence[Array]) -> Arrays:
        """As copies, in the model's own types."""
        ports = self._converted.outputs
        values = [as_type(_of_rank(array, port.rank), port.dtype) for array, port in zip(arrays, ports)]
        return by_name(values, [port.name for port in ports], self._artifact)

    def new_stream(self) -> Session:
        """An interpreter, if it can run the model: calls of a module hold the GIL."""
        interpreted = self._interpreted()
        stream: Session
        if interpreted is None:
            self.details["streams"] = "clones of the module, serialised by the GIL"
            stream = SharedStream(self, self._module.clone().onForward)
        else:
            self.details["streams"] = "one interpreter each; every call copies its inputs"
            stream = MnnStream(self, interpreted)
        return stream

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        """From the interpreter's hooks around each operator; a single row if it cannot run the model."""
        interpreted = self._interpreted()
        if interpreted is None:
            return only_the_whole(lambda: self.run(prepared), calls)
        return interpreted.profile(interpreted.filling([each.read() for each in prepared]), calls)

    def close(self) -> None:
        self._module = self._manager = None
        self.run = closed

    def _interpreted(self) -> Optional[Interpreted]:
        """None: only a module can run it."""
        if self._converted.subgraphs:
            return None
        outputs = [port.name for port in self._converted.outputs]
        try:
            return Interpreted(self._mnn, self._artifact.model, self._settings, self._ports, outputs)
        except Exception as error:  # such as where shapes depend on values
            if "createSession failed" not in str(error):
                raise
            return None


class MnnStream(SharedStream):
    """A caller with an interpreter of its own: the sessions of one interpreter run one after the other."""

    def __init__(self, owner: MnnSession, interpreted: Interpreted) -> None:
        super().__init__(owner, interpreted.run)
        self.prepare = lambda inputs: interpreted.filling(owner.arrays(inputs))
        self.outputs = lambda result: owner.named(result.arrays())


class Fill(NamedTuple):
    """An input of a session, and the tensor that is copied into it."""

    into: Any
    tensor: Tensor


class Interpreted:
    """The model in MNN's interpreter. A call reuses the memory of its inputs, so each call copies them first."""

    def __init__(
        self, mnn: ModuleType, model: str, settings: Details, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self._mnn = mnn
        self._interpreter = mnn.Interpreter(model)
        if os.path.isfile(f"{model}.weight"):
            self._interpreter.setExternalFile(f"{model}.weight")
        self._session = self._interpreter.createSession(settings)
        there = self._interpreter.getSessionInputAll(self._session)
        self._inputs = [there.get(name) for name in inputs]  # an unused one is missing
        made = self._interpreter.getSessionOutputAll(self._session)
        self._outputs = [made[name] for name in outputs]
        self._run = self._interpreter.runSession

    def filling(self, arrays: Sequence[Array]) -> List[Fill]:
        """Of all inputs, in their order."""
        wanted = [(tensor, array) for tensor, array in zip(self._inputs, arrays) if tensor is not None]
        if any(tuple(tensor.getShape()) != array.shape for tensor, array in wanted):
            for tensor, array in wanted:
                self._interpreter.resizeTensor(tensor, tuple(array.shape))
            self._interpreter.resizeSession(self._session)
        return [Fill(tensor, self._tensor(array)) for tensor, array in wanted]

    def run(self, filling: Sequence[Fill]) -> Interpreted:
        for into, tensor in filling:
            into.copyFrom(tensor)
        if self._run(self._session) != 0:
            raise Unsupported("run", "MNN's interpreter cannot run the model; see the log", kind="error")
        return self

    def arrays(self) -> List[Array]:
        """Outputs of the last call."""
        numpy = import_module("numpy")
        found = []
        for output in self._outputs:
            array = numpy.zeros(output.getShape(), dtype=str(output.getNumpyData().dtype))
            tensor = self._tensor(array)
            output.copyToHostTensor(tensor)  # from its own layout
            found.append(numpy.array(tensor.getNumpyData()))  # the result is a view
        return found

    def profile(self, filling: Sequence[Fill], calls: int) -> List[OpTime]:
        times: Times = {}
        began = 0.0

        def begin(tensors: Tensor, operator: Any) -> bool:
            nonlocal began
            began = perf_counter()
            return True

        def end(tensors: Tensor, operator: Any) -> bool:
            add_time(times, (operator.getType(), operator.getName()), perf_counter() - began)
            return True

        for number in range(WARMUP_CALLS + calls):
            if number == WARMUP_CALLS:
                times.clear()
            for into, tensor in filling:
                into.copyFrom(tensor)
            self._interpreter.runSessionWithCallBackInfo(self._session, begin, end)
        return slowest_first(times, calls)

    def _tensor(self, array: Array) -> Any:
        kinds = {"float32": self._mnn.Halide_Type_Float, "int32": self._mnn.Halide_Type_Int}
        kind = kinds.get(str(array.dtype), self._mnn.Halide_Type_Uint8)
        return self._mnn.Tensor(tuple(array.shape), kind, array, self._mnn.Tensor_DimensionType_Caffe)


def settings_of(options: RuntimeOptions) -> Details:
    """ "normal" precision would let processors that have it compute in float16."""
    threads = min(options.threads, MOST_THREADS)
    return {"backend": "CPU", "numThread": threads, "precision": "high", "memory": "normal", "power": "normal"}


def _converted(array: Array, kind: str, port: str) -> Array:
    if kind not in TYPES:
        raise Unsupported("first_run", f"input {port} is {kind}: MNN's Python package creates only {', '.join(TYPES)}")
    numpy = import_module("numpy")
    value = numpy.asarray(array)
    if not value.size:
        raise Unsupported("first_run", f"input {port} is empty, and MNN takes no empty arrays")
    if kind == "int" and (value.max() > 2**31 - 1 or value.min() < -(2**31)):
        raise Unsupported("first_run", f"input {port} has integers of more than 32 bits, which MNN does not have")
    return as_type(value, TYPES[kind])


def _of_rank(array: Array, rank: int) -> Array:
    """One-dimensional convolutions run as two-dimensional ones, and their outputs keep the last dimension of size 1."""
    return array[..., 0] if array.ndim == rank + 1 and array.shape[-1] == 1 else array

"""Sessions of MNN: its module for one caller; for several, and to be profiled, its interpreter."""

from __future__ import annotations

import os
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from benchmodels.runtimes.artifact import Artifact, as_type, by_name, in_order
from benchmodels.runtimes.base import FP32, OpTime, Options, Session, Unsupported, slowest_first
from benchmodels.runtimes.mnn_graph import Port

WARMUP_CALLS = 3
MOST_THREADS = 32  # MNN takes no more, and says nothing
# Types of inputs that its Python can make, in numpy's words; whole numbers have 32 bits, booleans are such numbers.
TYPES = {"float": "float32", "int": "int32", "uint8": "uint8"}


class Converted(NamedTuple):
    """What MNN's file does not tell. `subgraphs`: it has branches or loops, which only a module can run."""

    outputs: Sequence[Port]
    subgraphs: bool


class MnnSession:
    """A call is the module's own `onForward`: all outputs are computed when it returns, and belong to the caller."""

    provider = "CPU"
    precision = FP32
    consumes_inputs = False
    first_run_builds = False

    def __init__(self, artifact: Artifact, converted: Converted, options: Options) -> None:
        self._mnn: Any = import_module("MNN")
        self._artifact = artifact
        self._converted = converted
        self._settings = settings_of(options)
        self._ports = [each.port for each in artifact.inputs]
        network: Any = import_module("MNN.nn")
        try:
            self._manager = network.create_runtime_manager((self._settings,))
            self._module = network.load_module_from_file(
                artifact.model, self._ports, [port.name for port in converted.outputs], runtime_manager=self._manager
            )
        except SystemError:  # what MNN's own code raises by mistake; the reason is only printed
            raise Unsupported("load", f"MNN cannot load {artifact.model}: its log says why", kind="error") from None
        self._types = [str(each.dtype).rpartition(".")[2] for each in self._module.get_info()["inputs"]]
        self.run: Callable[[Any], Any] = self._module.onForward
        self.details: Dict[str, Any] = {
            "threads": self._settings["numThread"],
            "wait_policy": "yield",  # in a loop while a call is running; asleep between calls
            "precision_mode": self._settings["precision"],
            "memory_mode": self._settings["memory"],
        }

    def prepare(self, inputs: Any) -> Any:
        expr: Any = import_module("MNN.expr")
        arrays = self.arrays(inputs)
        return [
            expr.const(array, list(array.shape), expr.NCHW, getattr(expr, kind))
            for array, kind in zip(arrays, self._types)
        ]

    def arrays(self, inputs: Any) -> List[Any]:
        """The inputs in MNN's types and in the order of its ports."""
        found = in_order(inputs, self._ports, self._artifact)
        return [_converted(array, kind, port) for array, kind, port in zip(found, self._types, self._ports)]

    def outputs(self, result: Any) -> Dict[str, Any]:
        return self.named([each.read() for each in result])

    def named(self, arrays: Sequence[Any]) -> Dict[str, Any]:
        """As copies in the types that they have in the model."""
        ports = self._converted.outputs
        values = [as_type(_of_rank(array, port.rank), port.dtype) for array, port in zip(arrays, ports)]
        return by_name(values, [port.name for port in ports], self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return False  # MNN does not write to what a module is given

    def new_stream(self) -> Session:
        """By an interpreter, if it can run the model: calls of a module hold Python's lock."""
        interpreted = self._interpreted()
        stream: Session
        if interpreted is None:
            self.details["streams"] = "clones of the module, one after the other: they hold Python's lock"
            stream = ClonedSession(self, self._module.clone())
        else:
            self.details["streams"] = "an interpreter for each; inputs are copied to it at each call"
            stream = MnnStream(self, interpreted)
        return stream

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        """By the interpreter, which tells the beginning and end of each operator; one row where it cannot run the model."""
        interpreted = self._interpreted()
        if interpreted is None:
            return [OpTime("the runtime", "", _median_s(lambda: self.run(prepared), calls), 1.0)]
        return interpreted.profile(interpreted.filling([each.read() for each in prepared]), calls)

    def close(self) -> None:
        self._module = self._manager = None
        self.run = _closed

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


class ClonedSession:
    """One caller of several, with a copy of the module; what they share is closed by the first."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, owner: MnnSession, module: Any) -> None:
        self.provider, self.precision, self.details = owner.provider, owner.precision, owner.details
        self.prepare, self.outputs, self.inputs_changed = owner.prepare, owner.outputs, owner.inputs_changed
        self.new_stream, self.profile = owner.new_stream, owner.profile
        self.run: Callable[[Any], Any] = module.onForward

    def close(self) -> None:
        self.run = _closed


class MnnStream:
    """One caller of several: an interpreter of its own, since the sessions of one are called one after the other."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, owner: MnnSession, interpreted: Interpreted) -> None:
        self.provider, self.precision, self.details = owner.provider, owner.precision, owner.details
        self.inputs_changed, self.new_stream, self.profile = owner.inputs_changed, owner.new_stream, owner.profile
        self._owner = owner
        self._interpreted: Any = interpreted

    def prepare(self, inputs: Any) -> Any:
        return self._interpreted.filling(self._owner.arrays(inputs))

    def run(self, prepared: Any) -> Any:
        return self._interpreted.run(prepared)

    def outputs(self, result: Any) -> Dict[str, Any]:
        return self._owner.named(result.arrays())

    def close(self) -> None:
        self._interpreted = None


class Fill(NamedTuple):
    """An input of a session, and the tensor that is copied into it."""

    into: Any
    tensor: Any


class Interpreted:
    """The model in MNN's interpreter. Its inputs lie in memory that a call uses again, so each call copies them first."""

    def __init__(
        self, mnn: Any, model: str, settings: Dict[str, Any], inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self._mnn = mnn
        self._interpreter = mnn.Interpreter(model)
        if os.path.isfile(f"{model}.weight"):
            self._interpreter.setExternalFile(f"{model}.weight")
        self._session = self._interpreter.createSession(settings)
        there = self._interpreter.getSessionInputAll(self._session)
        self._inputs = [there.get(name) for name in inputs]  # one that no operator uses is not there
        made = self._interpreter.getSessionOutputAll(self._session)
        self._outputs = [made[name] for name in outputs]
        self._run = self._interpreter.runSession

    def filling(self, arrays: Sequence[Any]) -> List[Fill]:
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
            raise Unsupported("run", "MNN's interpreter cannot run the model: its log says why", kind="error")
        return self

    def arrays(self) -> List[Any]:
        """Outputs of the last call."""
        numpy: Any = import_module("numpy")
        found = []
        for output in self._outputs:
            array = numpy.zeros(output.getShape(), dtype=str(output.getNumpyData().dtype))
            tensor = self._tensor(array)
            output.copyToHostTensor(tensor)  # from its own layout
            found.append(numpy.array(tensor.getNumpyData()))  # what it gives lies in the tensor
        return found

    def profile(self, filling: Sequence[Fill], calls: int) -> List[OpTime]:
        times: Dict[Tuple[str, str], Tuple[float, float]] = {}
        began = 0.0

        def begin(tensors: Any, operator: Any) -> bool:
            nonlocal began
            began = perf_counter()
            return True

        def end(tensors: Any, operator: Any) -> bool:
            taken = perf_counter() - began
            place = (operator.getType(), operator.getName())
            seconds, count = times.get(place, (0.0, 0.0))
            times[place] = (seconds + taken, count + 1)
            return True

        for number in range(WARMUP_CALLS + calls):
            if number == WARMUP_CALLS:
                times.clear()
            for into, tensor in filling:
                into.copyFrom(tensor)
            self._interpreter.runSessionWithCallBackInfo(self._session, begin, end)
        return slowest_first(times, calls)

    def _tensor(self, array: Any) -> Any:
        kinds = {"float32": self._mnn.Halide_Type_Float, "int32": self._mnn.Halide_Type_Int}
        kind = kinds.get(str(array.dtype), self._mnn.Halide_Type_Uint8)
        return self._mnn.Tensor(tuple(array.shape), kind, array, self._mnn.Tensor_DimensionType_Caffe)


def settings_of(options: Options) -> Dict[str, Any]:
    """ "normal" precision would let processors that have it compute in float16."""
    threads = min(options.threads, MOST_THREADS)
    return {"backend": "CPU", "numThread": threads, "precision": "high", "memory": "normal", "power": "normal"}


def _converted(array: Any, kind: str, port: str) -> Any:
    if kind not in TYPES:
        raise Unsupported("first_run", f"input {port} is {kind}: MNN's Python makes only {', '.join(TYPES)}")
    numpy: Any = import_module("numpy")
    value = numpy.asarray(array)
    if not value.size:
        raise Unsupported("first_run", f"input {port} is empty, and MNN takes no empty arrays")
    if kind == "int" and (value.max() > 2**31 - 1 or value.min() < -(2**31)):
        raise Unsupported("first_run", f"input {port} has numbers of more than 32 bits, which MNN does not have")
    return as_type(value, TYPES[kind])


def _of_rank(array: Any, rank: int) -> Any:
    """Convolutions over one dimension are done over two, the last of size 1, and their outputs keep it."""
    return array[..., 0] if array.ndim == rank + 1 and array.shape[-1] == 1 else array


def _median_s(call: Callable[[], Any], calls: int) -> float:
    taken = []
    for _ in range(calls):
        began = perf_counter()
        call()
        taken.append(perf_counter() - began)
    return median(taken)


def _closed(prepared: Any) -> Any:
    raise RuntimeError("the session is closed")

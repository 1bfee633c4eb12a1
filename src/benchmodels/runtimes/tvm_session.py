"""A session of TVM: a virtual machine that calls the functions of a library, with weights that were loaded once."""

from __future__ import annotations

import os
import re
from importlib import import_module
from time import perf_counter
from typing import Any, Dict, List, Tuple

from benchmodels.runtimes.artifact import Artifact, as_type, by_name, in_order
from benchmodels.runtimes.base import OpTime, Options, Session, slowest_first

WARMUP_CALLS = 3
BIG_CORES = 1  # of TVM's modes of its pool: of the fastest cores as many as asked for
NOT_TUNED = "none: TVM's default schedules, nearly all of them for one thread"


class TvmSession:
    """Weights are constants of the library; each caller has a machine of its own, and shares them."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, tvm: Any, artifact: Artifact, options: Options) -> None:
        self._tvm = tvm
        self._artifact = artifact
        self.provider = "LLVM CPU"
        self.precision = artifact.precision
        self.details: Dict[str, Any] = {
            "threads": _set_threads(tvm, options.threads),
            "wait_policy": "passive",
            "cpu_pinning": False,
            "tuning": NOT_TUNED,
        }
        self._library = tvm.runtime.load_module(artifact.model)
        self._main = self._machine()["main"]

    def prepare(self, inputs: Any) -> List[Any]:
        ports = [each.port for each in self._artifact.inputs]
        arrays = in_order(inputs, ports, self._artifact)
        return [self._tensor(array, each.dtype) for array, each in zip(arrays, self._artifact.inputs)]

    def run(self, prepared: Any) -> Any:
        return self._main(*prepared)

    def outputs(self, result: Any) -> Dict[str, Any]:
        tensors = [result] if isinstance(result, self._tvm.runtime.Tensor) else list(result)
        return by_name([_array(tensor) for tensor in tensors], (), self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return False  # TVM does not write to what it is given

    def new_stream(self) -> Session:
        return TvmStream(self, self._machine()["main"])

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        """By a machine that says when each function is called, and when it has returned."""
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
        machines: Any = import_module("tvm.runtime.vm")
        return machines.VirtualMachine(self._library, self._tvm.cpu())

    def _tensor(self, array: Any, dtype: str) -> Any:
        value = as_type(array, dtype)
        if dtype == "bfloat16":
            value = value.view(import_module("ml_dtypes").bfloat16)
        return self._tvm.runtime.tensor(value)


class TvmStream:
    """One caller of several: a virtual machine of its own."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, owner: TvmSession, main: Any) -> None:
        self._main = main
        self.provider, self.precision, self.details = owner.provider, owner.precision, owner.details
        self.prepare, self.outputs, self.inputs_changed = owner.prepare, owner.outputs, owner.inputs_changed
        self.new_stream, self.profile = owner.new_stream, owner.profile

    def run(self, prepared: Any) -> Any:
        return self._main(*prepared)

    def close(self) -> None:
        self._main = None


class _Times:
    """Seconds and calls of each function; what it calls in turn is not its own."""

    def __init__(self) -> None:
        self.seconds: Dict[Tuple[str, str], Tuple[float, float]] = {}
        self._began: List[float] = []
        self._inner: List[float] = []

    def clear(self) -> None:
        self.seconds.clear()

    def note(self, function: Any, symbol: Any, before: bool, result: Any, *arguments: Any) -> int:
        if before:
            self._inner.append(0.0)
            self._began.append(perf_counter())
            return 0
        spent = perf_counter() - self._began.pop()
        own = spent - self._inner.pop()
        if self._inner:
            self._inner[-1] += spent
        place = _place(str(symbol))
        seconds, count = self.seconds.get(place, (0.0, 0.0))
        self.seconds[place] = (seconds + own, count + 1)
        return 0  # go on


def _set_threads(tvm: Any, threads: int) -> int:
    """How many its pool has then; TVM goes no further than the processors there are."""
    # Read when a thread first needs its pool, as those of streams will.
    os.environ["TVM_NUM_THREADS"] = str(threads)
    os.environ["TVM_BIND_THREADS"] = "0"  # bound to the first processors, it would wait for others that run there
    os.environ["TVM_THREAD_POOL_SPIN_COUNT"] = "0"  # spinning threads take the cores that others wait for
    tvm.get_global_func("runtime.config_threadpool")(BIG_CORES, threads)
    return int(tvm.get_global_func("runtime.NumThreads")())


def _place(symbol: str) -> Tuple[str, str]:
    """`fused_matmul12_add3` is a fused_matmul_add; the machine's own functions have no names beside their kind."""
    if symbol.startswith("vm."):
        return symbol, ""
    return re.sub(r"\d+(?=_|$)", "", symbol), symbol


def _array(tensor: Any) -> Any:
    """A copy; bfloat16 as float32."""
    array = tensor.numpy()
    return array.astype("float32") if array.dtype.name == "bfloat16" else array

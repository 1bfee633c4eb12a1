"""A session of ExecuTorch: one loaded method, called with tensors, its outputs left in its own memory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from benchmodels.runtimes.artifact import Artifact, by_name, in_order
from benchmodels.runtimes.base import OpTime, Options, Session, Unsupported, slowest_first
from benchmodels.tensors import to_array

WARMUP_CALLS = 3
METHOD = "forward"
DELEGATION = "delegation.json"
# Of ExecuTorch's events: a whole call, a kernel of its own, and what is told once more by the events inside of it.
WHOLE, KERNEL, AROUND = "Method::execute", "native_call_", ("OPERATOR_CALL", "DELEGATE_CALL")


class Delegation(NamedTuple):
    """How a program is divided. `operators`: those that XNNPACK does not run."""

    delegates: int = 0
    delegated_nodes: int = 0
    other_nodes: int = 0
    operators: Sequence[str] = ()


def write_delegation(folder: str, delegation: Delegation) -> None:
    with open(os.path.join(folder, DELEGATION), "w", encoding="utf-8") as file:
        json.dump(delegation._asdict(), file, indent=1)


def read_delegation(folder: str) -> Delegation:
    with open(os.path.join(folder, DELEGATION), encoding="utf-8") as file:
        return Delegation(**json.load(file))


def bindings() -> Any:
    """The native part alone: the package around it imports the exporter, seconds and 130 MB that no call needs."""
    import_module("torch")  # whose libraries it is linked against
    try:
        return import_module("executorch.extension.pybindings._C")
    except ModuleNotFoundError:
        return import_module("executorch.extension.pybindings.portable_lib")


class ExecutorchSession:
    """Inputs are copied into the program's own memory by each call, as it plans them there."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, artifact: Artifact, delegation: Delegation, options: Options) -> None:
        self._native = bindings()
        self._artifact = artifact
        self._delegation = delegation
        self._options = options
        # The pool is the process's, and delegates keep a pointer to it: set before anything is loaded.
        if self._native._threadpool_get_thread_count() != options.threads:
            self._native._unsafe_reset_threadpool(options.threads)
        self._method = self._native._load_program(artifact.model).load_method(METHOD)
        self._call: Callable[..., Any] = self._method.__call__
        self.provider = "XNNPACK" if delegation.delegates else "portable kernels"
        self.precision = artifact.precision
        self.details: Dict[str, Any] = {
            "threads": self._native._threadpool_get_thread_count(),
            "wait_policy": "pthreadpool",
            "delegates": delegation.delegates,
            "delegated_nodes": delegation.delegated_nodes,
            "other_nodes": delegation.other_nodes,
            "other_operators": list(delegation.operators),
        }
        if options.streams > 1:
            self.details["streams"] = "take turns: a call holds the interpreter's lock"

    def prepare(self, inputs: Any) -> Any:
        torch: Any = import_module("torch")
        arrays = in_order(inputs, [each.port for each in self._artifact.inputs], self._artifact)
        return [
            torch.tensor(array).to(getattr(torch, each.dtype)).contiguous()
            for array, each in zip(arrays, self._artifact.inputs)
        ]

    def run(self, prepared: Any) -> Any:
        return self._call(prepared, False)  # False: outputs are not copied

    def outputs(self, result: Any) -> Dict[str, Any]:
        # Before its outputs a program returns those inputs that it changes.
        own = result[max(0, len(result) - len(self._artifact.outputs)) :]
        return by_name([to_array(tensor) for tensor in own], (), self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return False  # it works on its own copies

    def new_stream(self) -> Session:
        return ExecutorchSession(self._artifact, self._delegation, self._options)

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        program = self._native._load_program(self._artifact.model, enable_etdump=True)
        method = program.load_method(METHOD)
        if not program.has_etdump():
            return [_whole(lambda: self.run(prepared), calls)]
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
        self._call = _closed


def read_profile(path: str, calls: int) -> List[OpTime]:
    """The last `calls` runs of each kernel by its kind, and what of a call no kernel accounts for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports, about itself
        devtools: Any = import_module("executorch.devtools")
        blocks = devtools.Inspector(etdump_path=path).event_blocks
    times: Dict[Tuple[str, str], Tuple[float, float]] = {}
    whole = 0.0
    for block in blocks:
        for event in block.events:
            if block.name != "Execute" or event.perf_data is None:
                continue
            runs = [ms / 1e3 for ms in event.perf_data.raw[-calls:]]
            if event.name == WHOLE:
                whole += sum(runs)
            elif event.name not in AROUND:
                place = (_kind(event.name), "")
                seconds, count = times.get(place, (0.0, 0.0))
                times[place] = (seconds + sum(runs), count + len(runs))
    if not times:
        raise Unsupported("run", "ExecuTorch's event tracer told of no operator", kind="error")
    rest = whole - sum(seconds for seconds, _ in times.values())
    if rest > 0:
        times["the runtime", ""] = (rest, float(calls))
    return slowest_first(times, calls)


def _kind(name: str) -> str:
    """`native_call_addmm.out` is addmm; XNNPACK numbers its operators of one kind: `Transpose (ND, X32) #2`."""
    if name.startswith(KERNEL):
        return name[len(KERNEL) :].partition(".")[0]
    return name.rpartition(" #")[0] or name


def _whole(call: Callable[[], Any], calls: int) -> OpTime:
    """All that is known where ExecuTorch was built without its event tracer."""
    seconds = []
    for _ in range(calls):
        began = perf_counter()
        call()
        seconds.append(perf_counter() - began)
    return OpTime("the runtime", "", median(seconds), 1.0)


def _closed(*args: Any) -> Any:
    raise RuntimeError("the session is closed")

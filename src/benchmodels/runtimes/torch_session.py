"""A session around anything that torch can call: inputs placed before, inference mode, the device waited for."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple

from benchmodels.runtimes.base import Inputs, OpTime, Options, Session, slowest_first
from benchmodels.runtimes.torch_modules import CAST_TO
from benchmodels.tensors import flatten_call, is_plain, rebuilt_call, to_array, to_arrays

WARMUP_CALLS = 3
NO_OPERATORS = ("[", "ProfilerStep", "cuda")


class TorchSession:
    """Inference mode holds from the making of a session to its end, in the thread that made it: not entered at each call."""

    consumes_inputs = False
    first_run_builds = False
    threads_are_fixed = False  # compiled for so many

    def __init__(self, call: Callable[..., Any], options: Options, precision: str, details: Dict[str, Any]) -> None:
        torch: Any = import_module("torch")
        self.provider = f"torch {options.device}"
        self.precision = precision
        self.details = details
        self._call = call
        self._options = options
        self._device = torch.device(options.device)
        self._cast_to = getattr(torch, CAST_TO[options.precision]) if options.precision in CAST_TO else None
        self._mode: Any = torch.inference_mode()
        self._mode.__enter__()

    def prepare(self, inputs: Any) -> Inputs:
        torch: Any = import_module("torch")
        self.consumes_inputs = self.consumes_inputs or not is_plain([*inputs.args, *inputs.kwargs.values()])
        with torch.inference_mode(False), torch.no_grad():
            return Inputs(*rebuilt_call(inputs.args, inputs.kwargs, self._placed))

    def run(self, prepared: Any) -> Any:
        return self._call(*prepared.args, **prepared.kwargs)

    def outputs(self, result: Any) -> Dict[str, Any]:
        return to_arrays(result)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        before, after = self.prepare(inputs), flatten_call(*prepared)
        unchanged = flatten_call(*before)
        return len(after) != len(unchanged) or not all(map(_same, unchanged, after))

    def new_stream(self) -> Session:
        torch: Any = import_module("torch")
        share = self._options.threads
        if not self.threads_are_fixed:
            share = max(1, share // max(1, self._options.streams))
            torch.set_num_threads(share)
        self.details["threads_per_stream"] = share
        return TorchStream(self, self._device)

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        number = WARMUP_CALLS + calls
        used_up = self.consumes_inputs or self._changes(prepared)
        ready = [self.prepare(prepared) for _ in range(number)] if used_up else [prepared] * number
        return profiled(self.run, ready, calls, self._device.type)

    def _changes(self, prepared: Any) -> bool:
        """Whether a call changes its inputs: seen with a copy of them."""
        own = self.prepare(prepared)
        self.run(own)
        return self.inputs_changed(own, prepared)

    def close(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None
        self._call = _closed

    def _placed(self, tensor: Any) -> Any:
        dtype = self._cast_to if tensor.is_floating_point() else None
        return tensor.detach().to(device=self._device, dtype=dtype, copy=True)


class DeviceTorchSession(TorchSession):
    """On an accelerator, where a call returns before its work is done."""

    def __init__(self, call: Callable[..., Any], options: Options, precision: str, details: Dict[str, Any]) -> None:
        super().__init__(call, options, precision, details)
        synchronize = getattr(import_module("torch"), self._device.type).synchronize
        self._wait: Callable[[], None] = (
            synchronize if self._device.index is None else partial(synchronize, self._device)
        )

    def prepare(self, inputs: Any) -> Inputs:
        prepared = super().prepare(inputs)
        self._wait()
        return prepared

    def run(self, prepared: Any) -> Any:
        result = self._call(*prepared.args, **prepared.kwargs)
        self._wait()
        return result


class TorchStream:
    """One caller of several, in a thread of its own, and on a stream of its own where the device has streams."""

    first_run_builds = False

    def __init__(self, owner: TorchSession, device: Any) -> None:
        torch: Any = import_module("torch")
        self._owner = owner
        self._torch = torch
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.provider, self.precision, self.details = owner.provider, owner.precision, owner.details
        self.prepare, self.outputs, self.inputs_changed = owner.prepare, owner.outputs, owner.inputs_changed
        self.new_stream, self.profile = owner.new_stream, owner.profile

    @property
    def consumes_inputs(self) -> bool:
        return self._owner.consumes_inputs

    def run(self, prepared: Any) -> Any:
        with self._torch.inference_mode():
            if self._stream is None:
                return self._owner.run(prepared)
            with self._torch.cuda.stream(self._stream):
                result = self._owner._call(*prepared.args, **prepared.kwargs)
            self._stream.synchronize()
            return result

    def close(self) -> None:
        self._stream = None


def session_on(options: Options) -> Callable[..., TorchSession]:
    return TorchSession if options.device_type == "cpu" else DeviceTorchSession


def profiled(run: Callable[[Any], Any], inputs: List[Any], calls: int, device: str) -> List[OpTime]:
    """Each operator's own time in the last `calls` of a call with each of `inputs`: the host's on a CPU, the device's on an accelerator."""
    profiler: Any = import_module("torch.profiler")
    on_device = device == "cuda"
    activities = [profiler.ProfilerActivity.CPU, *([profiler.ProfilerActivity.CUDA] if on_device else [])]
    for each in inputs[:-calls]:
        run(each)
    with profiler.profile(activities=activities) as profile:
        for each in inputs[-calls:]:
            run(each)
    events = [event for event in profile.key_averages() if not event.key.startswith(NO_OPERATORS)]
    if not on_device:
        return slowest_first(_summed((event, event.self_cpu_time_total) for event in events), calls)
    return slowest_first(_device_times(events), calls)


Times = Dict[Tuple[str, str], Tuple[float, float]]


def _device_times(events: Sequence[Any]) -> Times:
    """By the operators that launched the work, which is also listed by itself; by that where no operator claims it."""
    operators = [event for event in events if str(event.device_type).endswith("CPU")]
    names = {event.key for event in operators}
    kernels = [event for event in events if not str(event.device_type).endswith("CPU") and event.key not in names]
    by_operator = _summed((event, event.self_device_time_total) for event in operators)
    by_kernel = _summed((event, event.self_device_time_total) for event in kernels)
    claimed, whole = (sum(seconds for seconds, _ in times.values()) for times in (by_operator, by_kernel))
    if claimed < whole / 2:
        return by_kernel
    if claimed < whole * 0.99:
        by_operator["work outside of operators", ""] = (whole - claimed, 1.0)
    return by_operator


def _summed(own_times: Iterable[Tuple[Any, float]]) -> Times:
    times: Times = {}
    for event, own_us in own_times:
        if own_us > 0:
            seconds, count = times.get((_stable(event.key), ""), (0.0, 0.0))
            times[_stable(event.key), ""] = (seconds + own_us / 1e6, count + event.count)
    return times


def _stable(name: str) -> str:
    """The same in every process: without the hash of a graph, or its number."""
    if name.startswith("## Call CompiledFxGraph"):
        return "compiled graph"
    return re.sub(r"^graph_\d+_", "", name)


def _same(first: Any, second: Any) -> bool:
    numpy: Any = import_module("numpy")
    one, other = to_array(first.tensor), to_array(second.tensor)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(numpy.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def _closed(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("the session is closed")

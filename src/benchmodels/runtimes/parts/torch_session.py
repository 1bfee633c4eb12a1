"""A session around anything that torch can call: places inputs, enters inference mode, waits for the device."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from typing import Any, Callable, Iterable, List, Sequence, Tuple

from benchmodels.arrays import to_array
from benchmodels.runtimes.base import Inputs, OpTime, RuntimeOptions, Session, Times, slowest_first
from benchmodels.runtimes.parts.attention import attention_kernels
from benchmodels.runtimes.parts.sessions import WARMUP_CALLS, SharedStream, add_time, closed
from benchmodels.runtimes.parts.torch_modules import CAST_TO
from benchmodels.tensors import flatten_call, is_plain, rebuilt_call, to_arrays
from benchmodels.types import Arrays, Details, ModelInputs, Tensor, Value

NO_OPERATORS = ("[", "ProfilerStep", "cuda")


class TorchSession:
    """Stays in inference mode from creation to close, in the thread that created it, instead of entering it at each call."""

    consumes_inputs = False
    first_run_builds = False
    threads_are_fixed = False  # the code was compiled for a number of threads

    def __init__(self, call: Callable[..., Value], options: RuntimeOptions, precision: str, details: Details) -> None:
        torch = import_module("torch")
        self.provider = f"torch {options.device}"
        self.precision = precision
        self.details = details
        self.call = call
        self._options = options
        self._device = torch.device(options.device)
        self._cast_to = getattr(torch, CAST_TO[options.precision]) if options.precision in CAST_TO else None
        self._mode: Any = torch.inference_mode()
        self._mode.__enter__()

    def prepare(self, inputs: ModelInputs) -> Inputs:
        torch = import_module("torch")
        self.consumes_inputs = self.consumes_inputs or not is_plain([*inputs.args, *inputs.kwargs.values()])
        with torch.inference_mode(False), torch.no_grad():
            return Inputs(*rebuilt_call(inputs.args, inputs.kwargs, self._placed))

    def run(self, prepared: Inputs) -> Value:
        return self.call(*prepared.args, **prepared.kwargs)

    def outputs(self, result: Value) -> Arrays:
        return to_arrays(result)

    def inputs_changed(self, prepared: Inputs, inputs: ModelInputs) -> bool:
        before, after = self.prepare(inputs), flatten_call(*prepared)
        unchanged = flatten_call(*before)
        return len(after) != len(unchanged) or not all(map(_same, unchanged, after))

    def new_stream(self) -> Session:
        torch = import_module("torch")
        share = self._options.threads
        if not self.threads_are_fixed:
            share = max(1, share // max(1, self._options.streams))
            torch.set_num_threads(share)
        self.details["threads_per_stream"] = share
        return TorchStream(self, self._device)

    def profile(self, prepared: Inputs, calls: int) -> List[OpTime]:
        number = WARMUP_CALLS + calls
        used_up = self.consumes_inputs or self._changes(prepared)
        ready = [self.prepare(prepared) for _ in range(number)] if used_up else [prepared] * number
        return profiled(self.run, ready, calls, self._device.type)

    def _changes(self, prepared: Inputs) -> bool:
        """Whether a call changes its inputs, tried on a copy."""
        own = self.prepare(prepared)
        self.run(own)
        return self.inputs_changed(own, prepared)

    def close(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None
        self.call = closed

    def _placed(self, tensor: Tensor) -> Tensor:
        dtype = self._cast_to if tensor.is_floating_point() else None
        return tensor.detach().to(device=self._device, dtype=dtype, copy=True)


class DeviceTorchSession(TorchSession):
    """On an accelerator, where calls are asynchronous."""

    def __init__(self, call: Callable[..., Value], options: RuntimeOptions, precision: str, details: Details) -> None:
        super().__init__(call, options, precision, details)
        synchronize = getattr(import_module("torch"), self._device.type).synchronize
        self._wait: Callable[[], None] = (
            synchronize if self._device.index is None else partial(synchronize, self._device)
        )

    def prepare(self, inputs: ModelInputs) -> Inputs:
        prepared = super().prepare(inputs)
        self._wait()
        return prepared

    def run(self, prepared: Inputs) -> Value:
        result = self.call(*prepared.args, **prepared.kwargs)
        self._wait()
        return result

    def kernels(self, prepared: Inputs) -> Details:
        found = attention_kernels(lambda: self.call(*prepared.args, **prepared.kwargs))
        return {"attention": found} if found else {}


class TorchStream(SharedStream):
    """A caller in its own thread and, if the device has streams, on its own stream."""

    def __init__(self, owner: TorchSession, device: Any) -> None:
        torch = import_module("torch")
        stream = torch.cuda.Stream(device) if device.type == "cuda" else None

        def run(prepared: Inputs) -> Value:
            with torch.inference_mode():
                if stream is None:
                    return owner.run(prepared)
                with torch.cuda.stream(stream):
                    result = owner.call(*prepared.args, **prepared.kwargs)
                stream.synchronize()
                return result

        super().__init__(owner, run)


def session_on(options: RuntimeOptions) -> Callable[..., TorchSession]:
    return TorchSession if options.device_type == "cpu" else DeviceTorchSession


def profiled(run: Callable[[Inputs], Value], inputs: List[Inputs], calls: int, device: str) -> List[OpTime]:
    """Each operator's own time, on the CPU or the device, in the last `calls` calls; one call for each of `inputs`."""
    profiler = import_module("torch.profiler")
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


def _device_times(events: Sequence[Any]) -> Times:
    """By the operators that launched the kernels, or by kernel if most of these belong to no operator."""
    operators = [event for event in events if str(event.device_type).endswith("CPU")]
    names = {event.key for event in operators}
    kernels = [event for event in events if not str(event.device_type).endswith("CPU") and event.key not in names]
    by_operator = _summed((event, event.self_device_time_total) for event in operators)
    by_kernel = _summed((event, event.self_device_time_total) for event in kernels)
    claimed, whole = (sum(seconds for seconds, _ in times.values()) for times in (by_operator, by_kernel))
    if claimed < whole / 2:
        return by_kernel
    if claimed < whole * 0.99:
        by_operator["work outside operators", ""] = (whole - claimed, 1.0)
    return by_operator


def _summed(own_times: Iterable[Tuple[Any, float]]) -> Times:
    times: Times = {}
    for event, own_us in own_times:
        if own_us > 0:
            add_time(times, (_stable(event.key), ""), own_us / 1e6, event.count)
    return times


def _stable(name: str) -> str:
    """The same in every process: without a graph's hash or number."""
    if name.startswith("## Call CompiledFxGraph"):
        return "compiled graph"
    return re.sub(r"^graph_\d+_", "", name)


def _same(first: Value, second: Value) -> bool:
    numpy = import_module("numpy")
    one, other = to_array(first.tensor), to_array(second.tensor)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(numpy.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))

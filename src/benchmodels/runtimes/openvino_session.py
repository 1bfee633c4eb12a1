"""A session of OpenVINO: one infer request, synchronous, with outputs left in its own memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, List, Optional, Tuple

from benchmodels.runtimes.artifact import Artifact, as_type, by_name, in_order, without_bits
from benchmodels.runtimes.base import (
    BF16,
    FP16,
    FP32,
    INT8_DYNAMIC,
    OpTime,
    Options,
    Session,
    Unsupported,
    slowest_first,
)

WARMUP_CALLS = 3
HINTS = {FP32: "f32", BF16: "bf16", FP16: "f16", INT8_DYNAMIC: "f32"}
PRECISIONS = {"f32": FP32, "bf16": BF16, "f16": FP16}


class OpenVinoSession:
    """Compiled for latency; a second time, for throughput, if streams are asked for."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, ov: Any, artifact: Artifact, device: str, options: Options) -> None:
        self._ov = ov
        self._artifact = artifact
        self._device = device
        self._options = options
        self._core: Any = ov.Core()
        self._for_streams: Any = None
        self._compiled = self._compile(_latency(options, device))
        self._request = self._compiled.create_infer_request()
        self._infer = self._request.infer
        self._bound: Any = None
        self._ports = [sorted(port.get_names()) or [_name(port)] for port in self._compiled.inputs]
        self._types = [_type_of(port) for port in self._compiled.inputs]
        self._output_types = [_type_of(port) for port in self._compiled.outputs]
        self._output_names = [_name(port) for port in self._compiled.outputs]
        self.provider = device
        self.precision = self._really()
        self.details = self._told()

    def prepare(self, inputs: Any) -> Any:
        # A port goes by all the names that its value has in the graph.
        known = {*inputs, *(each.port for each in self._artifact.inputs)}
        named = [next((name for name in names if name in known), names[0]) for names in self._ports]
        arrays = in_order(inputs, named, self._artifact)
        return [
            self._tensor(array, port, kind) for array, port, kind in zip(arrays, self._compiled.inputs, self._types)
        ]

    def run(self, prepared: Any) -> Any:
        if prepared is not self._bound:
            for index, tensor in enumerate(prepared):
                self._request.set_input_tensor(index, tensor)
            self._bound = prepared
        self._infer(share_outputs=True)
        return self._request

    def last_call_s(self) -> float:
        return float(self._request.latency) / 1e3

    def outputs(self, result: Any) -> Dict[str, Any]:
        values = [
            without_bits(result.get_output_tensor(index).data, kind) for index, kind in enumerate(self._output_types)
        ]
        return by_name(values, self._output_names, self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return False  # OpenVINO does not write to what it is given

    def new_stream(self) -> Session:
        if self._for_streams is None:
            settings = {**_latency(self._options, self._device), "PERFORMANCE_HINT": "THROUGHPUT"}
            settings["NUM_STREAMS"] = str(self._options.streams)
            self._for_streams = self._compile(settings)
            self.details["streams"] = str(_property(self._for_streams, "NUM_STREAMS"))
        return OpenVinoStream(self, self._for_streams.create_infer_request())

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        compiled = self._compile({**_latency(self._options, self._device), "PERF_COUNT": "YES"})
        request = compiled.create_infer_request()
        for index, tensor in enumerate(prepared):
            request.set_input_tensor(index, tensor)
        times: Dict[Tuple[str, str], Tuple[float, float]] = {}
        for number in range(WARMUP_CALLS + calls):
            request.infer(share_outputs=True)
            if number < WARMUP_CALLS:
                continue
            for info in request.profiling_info:
                if str(info.status).endswith("EXECUTED") and info.real_time.total_seconds() > 0:
                    place = (info.node_type, info.node_name)
                    seconds, count = times.get(place, (0.0, 0.0))
                    times[place] = (seconds + info.real_time.total_seconds(), count + 1)
        return slowest_first(times, calls)

    def close(self) -> None:
        self._request = self._infer = self._compiled = self._for_streams = self._bound = self._core = None

    def _compile(self, settings: Dict[str, str]) -> Any:
        return self._core.compile_model(self._artifact.model, self._device, settings)

    def _tensor(self, array: Any, port: Any, kind: str) -> Any:
        value = as_type(array, kind)
        if kind == "bfloat16":
            tensor = self._ov.Tensor(self._ov.Type.bf16, value.shape)
            tensor.data[:] = value.view(tensor.data.dtype)
            return tensor
        return self._ov.Tensor(value, shared_memory=False)

    def _really(self) -> str:
        """The precision it computes in; Unsupported if that is not the one that was asked for."""
        asked = self._options.precision
        hint = _property(self._compiled, "INFERENCE_PRECISION_HINT")
        name = str(hint if hint is None or isinstance(hint, str) else hint.get_type_name())
        used = PRECISIONS.get(name, name)
        if asked == INT8_DYNAMIC:
            return INT8_DYNAMIC
        if used != asked:
            raise Unsupported(
                "load", f"{self._device} computes in {used} where {asked} is asked for", kind="unavailable"
            )
        return used

    def _told(self) -> Dict[str, Any]:
        told: Dict[str, Any] = {"wait_policy": "tbb", "performance_hint": "latency"}
        wanted = {
            "threads": "INFERENCE_NUM_THREADS",
            "streams": "NUM_STREAMS",
            "cpu_pinning": "ENABLE_CPU_PINNING",
            "hyper_threading": "ENABLE_HYPER_THREADING",
        }
        for name, key in wanted.items():
            value = _property(self._compiled, key)
            if value is not None:
                told[name] = value if isinstance(value, (int, bool)) else str(value)
        told["requests"] = 1
        return told


class OpenVinoStream:
    """One caller of several: an infer request of its own."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, owner: OpenVinoSession, request: Any) -> None:
        self._request = request
        self._bound: Any = None
        self.provider, self.precision, self.details = owner.provider, owner.precision, owner.details
        self.prepare, self.outputs, self.inputs_changed = owner.prepare, owner.outputs, owner.inputs_changed
        self.new_stream, self.profile = owner.new_stream, owner.profile

    def run(self, prepared: Any) -> Any:
        if prepared is not self._bound:
            for index, tensor in enumerate(prepared):
                self._request.set_input_tensor(index, tensor)
            self._bound = prepared
        self._request.infer(share_outputs=True)
        return self._request

    def close(self) -> None:
        self._request = self._bound = None


def _latency(options: Options, device: str) -> Dict[str, str]:
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": HINTS[options.precision]}
    if device.startswith("CPU"):
        settings.update(NUM_STREAMS="1", INFERENCE_NUM_THREADS=str(options.threads))
    return settings


def _property(compiled: Any, name: str) -> Optional[Any]:
    try:
        return compiled.get_property(name)
    except Exception:  # not every device has every property
        return None


def _name(port: Any) -> str:
    names = port.get_names()
    return str(port.get_any_name()) if names else str(port.get_index())


def _type_of(port: Any) -> str:
    kind = port.get_element_type()
    if kind.get_type_name() == "bf16":
        return "bfloat16"
    numpy: Any = import_module("numpy")
    return str(numpy.dtype(kind.to_dtype()))

"""OpenVINO: the ONNX export in its intermediate representation, compiled on loading."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from benchmodels.runtimes.base import (
    BF16,
    FP16,
    FP32,
    INT8_DYNAMIC,
    Captured,
    OpTime,
    RuntimeOptions,
    Session,
    StepTimer,
    Times,
    Unsupported,
    is_importable,
    slowest_first,
)
from benchmodels.runtimes.families import OnnxFamily
from benchmodels.runtimes.parts.artifact import BuiltModel, as_type, by_name, in_order, without_bits, write_artifact
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import WARMUP_CALLS, ArtifactSession, SharedStream, add_time, closed
from benchmodels.types import Array, Arrays, Details, ModelInputs, Prepared, Value

DEVICES = {"cpu": "CPU", "gpu": "GPU", "xpu": "GPU", "npu": "NPU"}
HINTS = {FP32: "f32", BF16: "bf16", FP16: "f16", INT8_DYNAMIC: "f32"}
PRECISIONS = {"f32": FP32, "bf16": BF16, "f16": FP16}


class OpenVino(OnnxFamily):
    """Keeps weights in float32 and sets the precision the device computes in, since its default may be bfloat16."""

    name = "openvino"
    aliases = ("ov",)
    accepts = (".xml", ".onnx", ".tflite")
    precisions = (FP32, BF16, FP16, INT8_DYNAMIC)
    packages = ("openvino",)
    install = "'benchwright[openvino]'"
    build_packages = ("nncf", *OnnxFamily.build_packages)
    modules = ("openvino",)

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        missing = super().unavailable(options)
        if missing or options.device_type == "cpu":
            return missing
        found = openvino().Core().available_devices
        if device_name(options) not in (*found, *(name.partition(".")[0] for name in found)):
            return f"openvino finds no {options.device} here, only {', '.join(found)}"
        return None

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        _require_nncf(options)
        # OpenVINO chooses the precision when it compiles, so the export keeps the model's own.
        with self.exported(captured, folder, options._replace(precision=FP32), steps) as exported:
            _convert(exported.path, folder, options, steps, {})
        write_artifact(
            folder, BuiltModel("model.xml", _written(options, exported.precision), exported.inputs, exported.outputs)
        )

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        _require_nncf(options)
        _convert(path, folder, options, steps, shapes)
        write_artifact(folder, BuiltModel("model.xml", _written(options)))

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        return OpenVinoSession(openvino(), artifact, device_name(options), options)


def openvino() -> ModuleType:
    """OpenVINO without its telemetry, which on import reports to a server, from a thread that disturbs measurements."""
    if "openvino" in sys.modules:
        return sys.modules["openvino"]
    absent: Any = None  # blocks the import
    before = sys.modules.get("openvino_telemetry")
    sys.modules["openvino_telemetry"] = absent
    try:
        return import_module("openvino")
    finally:
        del sys.modules["openvino_telemetry"]
        if before is not None:
            sys.modules["openvino_telemetry"] = before


def device_name(options: RuntimeOptions) -> str:
    """ "gpu:1" is GPU.1."""
    name = DEVICES.get(options.device_type, options.device_type.upper())
    return f"{name}.{options.device_index}" if ":" in options.device else name


def _convert(
    path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
) -> None:
    """Step "convert": reads a model and writes model.xml and model.bin."""
    ov = openvino()
    with steps.step("convert"), explaining("convert"):
        model = ov.Core().read_model(path)
        if shapes and model.is_dynamic():
            model.reshape({name: list(shape) for name, shape in shapes.items()})
        if options.precision == INT8_DYNAMIC:
            nncf = import_module("nncf")
            model = nncf.compress_weights(model)
        # The default silently rounds weights to float16.
        ov.save_model(model, os.path.join(folder, "model.xml"), compress_to_fp16=False)


def _require_nncf(options: RuntimeOptions) -> None:
    if options.precision == INT8_DYNAMIC and not is_importable("nncf"):
        raise Unsupported("convert", "int8 weights for openvino need nncf: pip install nncf", kind="unavailable")


def _written(options: RuntimeOptions, exported: str = FP32) -> str:
    """`exported`: the precision of the export, which a build sequence may have quantised."""
    return INT8_DYNAMIC if INT8_DYNAMIC in (options.precision, exported) else FP32


class OpenVinoSession(ArtifactSession):
    """One synchronous infer request whose outputs stay in its own memory, compiled for latency; for streams compiled again, for throughput."""

    def __init__(self, ov: ModuleType, artifact: BuiltModel, device: str, options: RuntimeOptions) -> None:
        super().__init__(artifact, options)
        self._ov = ov
        self._device = device
        self._core: Any = ov.Core()
        self._for_streams: Any = None
        self._compiled = self._compile(_latency(options, device))
        self._request = self._compiled.create_infer_request()
        self.run = caller(self._request)
        self._ports = [sorted(port.get_names()) or [_name(port)] for port in self._compiled.inputs]
        self._types = [_type_of(port) for port in self._compiled.inputs]
        self._output_types = [_type_of(port) for port in self._compiled.outputs]
        self._output_names = [_name(port) for port in self._compiled.outputs]
        self.provider = device
        self.precision = self._actual_precision(artifact)
        self.details = self._described()

    def prepare(self, inputs: ModelInputs) -> Any:
        # A port has all the names that its value has in the graph.
        known = {*inputs, *(each.port for each in self._artifact.inputs)}
        named = [next((name for name in names if name in known), names[0]) for names in self._ports]
        arrays = in_order(inputs, named, self._artifact)
        return [
            self._tensor(array, port, kind) for array, port, kind in zip(arrays, self._compiled.inputs, self._types)
        ]

    def last_call_s(self) -> float:
        return float(self._request.latency) / 1e3

    def outputs(self, result: Value) -> Arrays:
        values = [
            without_bits(result.get_output_tensor(index).data, kind) for index, kind in enumerate(self._output_types)
        ]
        return by_name(values, self._output_names, self._artifact)

    def new_stream(self) -> Session:
        if self._for_streams is None:
            settings = {**_latency(self._options, self._device), "PERFORMANCE_HINT": "THROUGHPUT"}
            settings["NUM_STREAMS"] = str(self._options.streams)
            self._for_streams = self._compile(settings)
            self.details["streams"] = str(_property(self._for_streams, "NUM_STREAMS"))
        return SharedStream(self, caller(self._for_streams.create_infer_request()))

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        compiled = self._compile({**_latency(self._options, self._device), "PERF_COUNT": "YES"})
        request = compiled.create_infer_request()
        run = caller(request)
        times: Times = {}
        for number in range(WARMUP_CALLS + calls):
            run(prepared)
            if number < WARMUP_CALLS:
                continue
            for info in request.profiling_info:
                if str(info.status).endswith("EXECUTED") and info.real_time.total_seconds() > 0:
                    add_time(times, (info.node_type, info.node_name), info.real_time.total_seconds())
        return slowest_first(times, calls)

    def close(self) -> None:
        self._request = self._compiled = self._for_streams = self._core = None
        self.run = closed

    def _compile(self, settings: Dict[str, str]) -> Any:
        return self._core.compile_model(self._artifact.model, self._device, settings)

    def _tensor(self, array: Array, port: Any, kind: str) -> Any:
        value = as_type(array, kind)
        if kind == "bfloat16":
            tensor = self._ov.Tensor(self._ov.Type.bf16, value.shape)
            tensor.data[:] = value.view(tensor.data.dtype)
            return tensor
        return self._ov.Tensor(value, shared_memory=False)

    def _actual_precision(self, artifact: BuiltModel) -> str:
        """The actual precision; Unsupported if it is not the requested one."""
        if artifact.precision == INT8_DYNAMIC:
            return INT8_DYNAMIC
        asked = self._options.precision
        hint = _property(self._compiled, "INFERENCE_PRECISION_HINT")
        name = str(hint if hint is None or isinstance(hint, str) else hint.get_type_name())
        used = PRECISIONS.get(name, name)
        if used != asked:
            raise Unsupported("load", f"{self._device} computes in {used}, not in {asked}", kind="unavailable")
        return used

    def _described(self) -> Details:
        described: Details = {"wait_policy": "tbb", "performance_hint": "latency"}
        wanted = {
            "threads": "INFERENCE_NUM_THREADS",
            "streams": "NUM_STREAMS",
            "cpu_pinning": "ENABLE_CPU_PINNING",
            "hyper_threading": "ENABLE_HYPER_THREADING",
        }
        for name, key in wanted.items():
            value = _property(self._compiled, key)
            if value is not None:
                described[name] = value if isinstance(value, (int, bool)) else str(value)
        described["requests"] = 1
        return described


def caller(request: Any) -> Callable[[Any], Any]:
    """Calls by `request`; inputs are bound only if they are not those of the last call."""
    infer, bound = request.infer, None

    def run(prepared: Prepared) -> Any:
        nonlocal bound
        if prepared is not bound:
            for index, tensor in enumerate(prepared):
                request.set_input_tensor(index, tensor)
            bound = prepared
        infer(share_outputs=True)
        return request

    return run


def _latency(options: RuntimeOptions, device: str) -> Dict[str, str]:
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
    numpy = import_module("numpy")
    return str(numpy.dtype(kind.to_dtype()))

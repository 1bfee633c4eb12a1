"""ONNX Runtime, on the CPU and, if its build has the provider, on accelerators."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import io
import json
import os
import shutil
import tempfile
from importlib import import_module
from types import ModuleType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

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
    Unsupported,
    is_importable,
)
from benchmodels.runtimes.families import OnnxFamily
from benchmodels.runtimes.parts.artifact import BuiltModel, as_type, by_name, in_order, without_bits, write_artifact
from benchmodels.runtimes.parts.export import export_onnx
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import WARMUP_CALLS, ArtifactSession, without_warmup
from benchmodels.runtimes.parts.tf32 import KINDS
from benchmodels.types import Arrays, Details, ModelInputs, Prepared, Value

CPU = "CPUExecutionProvider"
NVIDIA = {"CUDAExecutionProvider": "cuda", "TensorrtExecutionProvider": "tensorrt"}  # provider → its library
# ONNX types whose names differ in numpy.
TYPES = {"float": "float32", "double": "float64", "bfloat16": "bfloat16"}


class OnnxRuntime(OnnxFamily):
    """Exported by torch, optimised, executed by the device's provider."""

    name = "onnxruntime"
    aliases: Tuple[str, ...] = ("ort",)
    precisions: Tuple[str, ...] = (FP32, BF16, FP16, INT8_DYNAMIC)
    packages = ("onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-rocm", "onnxruntime")
    modules = ("onnxruntime",)
    install = "'benchwright[onnx]'"
    converts_onnx = True
    # torch calls ROCm devices "cuda", too.
    providers: Mapping[str, Sequence[str]] = {
        "cpu": (CPU,),
        "cuda": ("CUDAExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider"),
        "rocm": ("ROCMExecutionProvider", "MIGraphXExecutionProvider"),
    }
    providers_of_gpus = ("CUDAExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider")

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        missing = super().unavailable(options)
        if missing or (options.device_type == "cpu" and CPU in self.providers.get("cpu", ())):
            return missing
        if self._provider(options) is None:
            wanted = self.providers.get(options.device_type)
            if wanted is None:
                return f"{self.name} has no provider for '{options.device}'"
            there = import_module("onnxruntime").get_available_providers()
            lacks = f"this build of onnxruntime has no {' or '.join(wanted)}"
            is_for_gpus = any(name in there for name in self.providers_of_gpus)
            return f"{lacks}, only {', '.join(there)}" if is_for_gpus else f"{lacks}: pip install onnxruntime-gpu"
        return None

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        exported = export_onnx(captured, folder, options, steps)
        precision = exported.precision
        if options.precision == INT8_DYNAMIC:
            precision = _quantize(exported.path, steps)
        write_artifact(
            folder, BuiltModel(os.path.basename(exported.path), precision, exported.inputs, exported.outputs)
        )

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        if options.precision == FP32:
            write_artifact(folder, BuiltModel(os.path.abspath(path)))
        elif options.precision == INT8_DYNAMIC:
            precision = _quantize(path, steps, os.path.join(folder, "model.onnx"))
            write_artifact(folder, BuiltModel("model.onnx", precision))
        else:
            self.require_unconverted(options)

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        provider = self._provider(options)
        if provider is None:
            raise Unsupported("load", self.unavailable(options) or "no provider", kind="unavailable")
        return (OrtSession if provider == CPU else BoundSession)(artifact, provider, options)

    def _provider(self, options: RuntimeOptions) -> Optional[str]:
        runtime = import_module("onnxruntime")
        there = runtime.get_available_providers()
        return next((name for name in self.providers.get(options.device_type, ()) if name in there), None)


class OnnxRuntimeTensorRT(OnnxRuntime):
    """ONNX Runtime through TensorRT."""

    name = "onnxruntime-tensorrt"
    aliases: Tuple[str, ...] = ("trt", "tensorrt")
    precisions: Tuple[str, ...] = (FP32, FP16)
    providers: Mapping[str, Sequence[str]] = {"cuda": ("TensorrtExecutionProvider",)}


def _quantize(path: str, steps: StepTimer, to: Optional[str] = None) -> str:
    """Step "convert": int8 weights for matrix products, whose other operand is quantised on the fly."""
    if not is_importable("onnx"):
        raise Unsupported("convert", "quantisation needs onnx: pip install onnx", kind="unavailable")
    quantization = import_module("onnxruntime.quantization")
    onnx = import_module("onnx")
    aside = f"{path}.int8" if to is None else to
    with steps.step("convert"), explaining("convert"):
        large = os.path.getsize(path) + _size_beside(path) > 1 << 30
        quantization.quantize_dynamic(
            _without_shapes_of_weights(onnx, path, to is None),
            aside,
            weight_type=quantization.QuantType.QInt8,
            use_external_data_format=large,
        )
        graph = onnx.load(aside, load_external_data=False).graph
        if not any("Integer" in node.op_type or node.op_type.startswith("DynamicQuantize") for node in graph.node):
            raise Unsupported("convert", "no product with constant weights, so nothing to quantise to int8")
        if to is None:
            _remove_with_data(path)
            if large:
                onnx.save(onnx.load(aside), path, save_as_external_data=True, location=f"{os.path.basename(path)}.data")
                _remove_with_data(aside)
            else:
                os.replace(aside, path)
    return INT8_DYNAMIC


def _without_shapes_of_weights(onnx: ModuleType, path: str, is_ours: bool) -> Any:
    """The model without the shapes of its weights, which exporters write: quantising transposes some weights."""
    model = onnx.load(path, load_external_data=False)
    weights = {weight.name for weight in model.graph.initializer}
    listed = [value for value in model.graph.value_info if value.name in weights]
    if not listed:
        return path
    if not is_ours:
        model = onnx.load(path)
        listed = [value for value in model.graph.value_info if value.name in weights]
    for value in listed:
        model.graph.value_info.remove(value)
    if not is_ours:
        return model
    onnx.save(model, path)
    return path


def _size_beside(path: str) -> int:
    return os.path.getsize(f"{path}.data") if os.path.exists(f"{path}.data") else 0


def _remove_with_data(path: str) -> None:
    for name in (path, f"{path}.data"):
        if os.path.exists(name):
            os.unlink(name)


def _load_libraries(runtime: ModuleType, provider: str) -> None:
    """CUDA's libraries that pip installed are only found if somebody loads them: importing torch would, but it is not here."""
    preload = getattr(runtime, "preload_dlls", None)
    if provider in NVIDIA and preload is not None:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints whatever it does not find, needed or not
            preload()


def _what_is_missing(runtime: ModuleType, provider: str) -> str:
    """Why the provider's library was not loaded, as far as the linker says."""
    if provider not in NVIDIA:
        return ""
    name = f"libonnxruntime_providers_{NVIDIA[provider]}.so"
    try:
        ctypes.CDLL(os.path.join(os.path.dirname(runtime.__file__ or ""), "capi", name))
    except OSError as error:
        if "libnvinfer" in str(error) or "libnvonnxparser" in str(error):
            return f": {error}; it needs TensorRT's libraries: pip install tensorrt"
        if "undefined symbol" not in str(error):  # what ONNX Runtime itself would have given it
            return f": {error}; it needs CUDA's libraries of the version it was built for ({_built_for(runtime)})"
    return "; its log says why"


def _built_for(runtime: ModuleType) -> str:
    return f"CUDA {getattr(runtime, 'cuda_version', '') or 'unknown'}"


class OrtSession(ArtifactSession):
    """All outputs are fetched as arrays, as `InferenceSession.run` does."""

    def __init__(self, artifact: BuiltModel, provider: str, options: RuntimeOptions, profile_prefix: str = "") -> None:
        self._runtime = import_module("onnxruntime")
        super().__init__(artifact, options)
        self.provider = provider
        settings = _settings(self._runtime, options, profile_prefix)
        _load_libraries(self._runtime, provider)
        self._session = self._runtime.InferenceSession(
            artifact.model, settings, providers=[(provider, _provider_options(provider, options))]
        )
        self._session.disable_fallback()
        used = self._session.get_providers()
        if used[0] != provider:
            why = _what_is_missing(self._runtime, provider)
            raise Unsupported("load", f"onnxruntime could not use {provider}{why}", kind="unavailable")
        self._run = self._session.run
        self._ports = [port.name for port in self._session.get_inputs()]
        self._types = [_type_of(port.type) for port in self._session.get_inputs()]
        self._output_names = [port.name for port in self._session.get_outputs()]
        self._output_types = [_type_of(port.type) for port in self._session.get_outputs()]
        if "bfloat16" in (*self._types, *self._output_types) and not isinstance(self, BoundSession):
            raise Unsupported("load", "onnxruntime has no bfloat16 inputs or outputs on the CPU")
        self.details: Details = {
            "threads": settings.intra_op_num_threads,
            "interop_threads": settings.inter_op_num_threads,
            "wait_policy": "passive",
            "providers": used,
            "graph_optimization": "all",
        }
        if provider != CPU:
            self.details["tf32_allowed"] = self._tf32(provider)
        if provider == CPU and self.precision == "fp16":
            self.details["computes_in"] = "float32, between casts, for operators without a float16 kernel"

    def _tf32(self, provider: str) -> List[str]:
        """Both providers for NVIDIA GPUs use it by default."""
        settings = self._session.get_provider_options().get(provider, {})
        return [] if settings.get("use_tf32", "1") == "0" else list(KINDS)

    def prepare(self, inputs: ModelInputs) -> Any:
        arrays = in_order(inputs, self._ports, self._artifact)
        return {port: as_type(array, kind) for port, array, kind in zip(self._ports, arrays, self._types)}

    def run(self, prepared: Prepared) -> Any:
        return self._run(self._output_names, prepared)

    def outputs(self, result: Value) -> Arrays:
        return by_name([without_bits(array, None) for array in result], self._output_names, self._artifact)

    def new_stream(self) -> Session:
        """Threads may call one session concurrently; they share its pool."""
        return copy.copy(self)

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        folder = tempfile.mkdtemp(prefix="benchprobe-profile-")
        try:
            session = type(self)(self._artifact, self.provider, self._options, os.path.join(folder, "ort"))
            own = session.adopted(prepared)
            for _ in range(WARMUP_CALLS + calls):
                session.run(own)
            return read_profile(session._session.end_profiling(), calls)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def adopted(self, prepared: Prepared) -> Any:
        """Inputs that another session prepared, for this one."""
        return prepared

    def close(self) -> None:
        self._session = self._run = None


class Bound(NamedTuple):
    """Inputs and outputs on a device, of one session; `feeds`: the inputs as arrays."""

    binding: Any
    feeds: Arrays


class BoundSession(OrtSession):
    """Inputs are copied to the device once; outputs stay there until they are read."""

    def prepare(self, inputs: ModelInputs) -> Bound:
        return self._bound(super().prepare(inputs))

    def adopted(self, prepared: Prepared) -> Any:
        return self._bound(prepared.feeds)

    def _bound(self, arrays: Arrays) -> Bound:
        device, index = _place(self.provider), self._options.device_index
        binding = self._session.io_binding()
        value = self._runtime.OrtValue
        for port, kind in zip(self._ports, self._types):
            if kind == "bfloat16":
                self.details["inputs"] = "bfloat16 inputs are copied to the device at each call"
                made = value.ortvalue_from_numpy_with_onnx_type(arrays[port], 16)
            else:
                made = value.ortvalue_from_numpy(arrays[port], device, index)
            binding.bind_ortvalue_input(port, made)
        for name in self._output_names:
            binding.bind_output(name, device, index)
        return Bound(binding, arrays)

    def run(self, prepared: Prepared) -> Any:
        binding = prepared.binding
        self._session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return binding

    def outputs(self, result: Value) -> Arrays:
        arrays = result.copy_outputs_to_cpu()
        values = [without_bits(array, kind) for array, kind in zip(arrays, self._output_types)]
        return by_name(values, self._output_names, self._artifact)


def read_profile(path: str, calls: int) -> List[OpTime]:
    """Of each node the last `calls` runs, in whole microseconds as onnxruntime writes them."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    runs: Dict[Tuple[str, str], List[float]] = {}
    for event in events:
        name = event.get("name", "")
        if event.get("cat") == "Node" and name.endswith("_kernel_time"):
            place = (event["args"].get("op_name", "?"), name[: -len("_kernel_time")])
            runs.setdefault(place, []).append(event["dur"] / 1e6)
    return without_warmup(runs, calls)


def _settings(runtime: ModuleType, options: RuntimeOptions, profile_prefix: str) -> Any:
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.log_severity_level = 3
    for pool in ("intra_op", "inter_op"):  # spinning threads occupy cores that others need
        settings.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
    if profile_prefix:
        settings.enable_profiling = True
        settings.profile_file_prefix = profile_prefix
    return settings


def _provider_options(provider: str, options: RuntimeOptions) -> Dict[str, str]:
    if provider == CPU:
        return {}
    if provider == "TensorrtExecutionProvider":
        return {"device_id": str(options.device_index), "trt_fp16_enable": str(options.precision == "fp16")}
    exact = {} if options.tf32 or provider != "CUDAExecutionProvider" else {"use_tf32": "0"}
    return {"device_id": str(options.device_index), **exact}


def _place(provider: str) -> str:
    return "cpu" if provider == CPU else "cuda"


def _type_of(text: str) -> str:
    """`tensor(float)` → float32."""
    name = text[len("tensor(") : -1] if text.startswith("tensor(") else text
    return TYPES.get(name, name)

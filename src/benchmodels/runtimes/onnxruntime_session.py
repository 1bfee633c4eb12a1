"""Sessions of ONNX Runtime: plain runs on the CPU; on accelerators inputs and outputs stay on the device."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from importlib import import_module
from typing import Any, Dict, List, NamedTuple, Tuple

from benchmodels.runtimes.artifact import Artifact, as_type, by_name, in_order, without_bits
from benchmodels.runtimes.base import OpTime, Options, Session, Unsupported, slowest_first
from benchmodels.runtimes.tf32 import KINDS

WARMUP_CALLS = 3
# Types of ONNX in numpy's words where they differ.
TYPES = {"float": "float32", "double": "float64", "bfloat16": "bfloat16"}


class OrtSession:
    """All outputs are fetched as arrays, as `InferenceSession.run` does."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, artifact: Artifact, provider: str, options: Options, profile_prefix: str = "") -> None:
        self._runtime: Any = import_module("onnxruntime")
        self._artifact = artifact
        self._options = options
        self.provider = provider
        self.precision = artifact.precision
        settings = _settings(self._runtime, options, profile_prefix)
        self._session = self._runtime.InferenceSession(
            artifact.model, settings, providers=[(provider, _provider_options(provider, options))]
        )
        self._session.disable_fallback()
        used = self._session.get_providers()
        if used[0] != provider:
            raise Unsupported("load", f"onnxruntime could not use {provider} and took {used[0]}", kind="unavailable")
        self._run = self._session.run
        self._ports = [port.name for port in self._session.get_inputs()]
        self._types = [_type_of(port.type) for port in self._session.get_inputs()]
        self._output_names = [port.name for port in self._session.get_outputs()]
        self._output_types = [_type_of(port.type) for port in self._session.get_outputs()]
        if "bfloat16" in (*self._types, *self._output_types) and not isinstance(self, BoundSession):
            raise Unsupported("load", "onnxruntime takes and returns no bfloat16 on the CPU")
        self.details: Dict[str, Any] = {
            "threads": settings.intra_op_num_threads,
            "interop_threads": settings.inter_op_num_threads,
            "wait_policy": "passive",
            "providers": used,
            "graph_optimization": "all",
        }
        if provider != "CPUExecutionProvider":
            self.details["tf32_allowed"] = self._tf32(provider)
        if provider == "CPUExecutionProvider" and self.precision == "fp16":
            self.details["computes_in"] = "float32, between casts, wherever it has no float16 kernel"

    def _tf32(self, provider: str) -> List[str]:
        """Both providers for NVIDIA's GPUs compute in it unless they are told not to."""
        settings = self._session.get_provider_options().get(provider, {})
        return [] if settings.get("use_tf32", "1") == "0" else list(KINDS)

    def prepare(self, inputs: Any) -> Any:
        arrays = in_order(inputs, self._ports, self._artifact)
        return {port: as_type(array, kind) for port, array, kind in zip(self._ports, arrays, self._types)}

    def run(self, prepared: Any) -> Any:
        return self._run(self._output_names, prepared)

    def outputs(self, result: Any) -> Dict[str, Any]:
        return by_name([without_bits(array, None) for array in result], self._output_names, self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return False  # onnxruntime does not write to what it is given

    def new_stream(self) -> Session:
        """A session may be called by many threads; they share its pool."""
        return copy.copy(self)

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        folder = tempfile.mkdtemp(prefix="benchprobe-profile-")
        try:
            session = type(self)(self._artifact, self.provider, self._options, os.path.join(folder, "ort"))
            own = session.adopted(prepared)
            for _ in range(WARMUP_CALLS + calls):
                session.run(own)
            return read_profile(session._session.end_profiling(), calls)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def adopted(self, prepared: Any) -> Any:
        """What another session prepared, for this one."""
        return prepared

    def close(self) -> None:
        self._session = self._run = None


class Bound(NamedTuple):
    """Inputs and outputs on a device, of one session; `feeds`: the inputs as arrays."""

    binding: Any
    feeds: Dict[str, Any]


class BoundSession(OrtSession):
    """Inputs are copied to the device once; outputs are left there until they are asked for."""

    def prepare(self, inputs: Any) -> Bound:
        return self._bound(super().prepare(inputs))

    def adopted(self, prepared: Any) -> Any:
        return self._bound(prepared.feeds)

    def _bound(self, arrays: Dict[str, Any]) -> Bound:
        device, index = _place(self.provider), self._options.device_index
        binding = self._session.io_binding()
        value = self._runtime.OrtValue
        for port, kind in zip(self._ports, self._types):
            if kind == "bfloat16":
                self.details["inputs"] = "bfloat16 ones are copied to the device at each call"
                made = value.ortvalue_from_numpy_with_onnx_type(arrays[port], 16)
            else:
                made = value.ortvalue_from_numpy(arrays[port], device, index)
            binding.bind_ortvalue_input(port, made)
        for name in self._output_names:
            binding.bind_output(name, device, index)
        return Bound(binding, arrays)

    def run(self, prepared: Any) -> Any:
        binding = prepared.binding
        self._session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return binding

    def outputs(self, result: Any) -> Dict[str, Any]:
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
    times: Dict[Tuple[str, str], Tuple[float, float]] = {}
    for place, seconds in runs.items():
        kept = seconds[len(seconds) * WARMUP_CALLS // (WARMUP_CALLS + calls) :]
        times[place] = (sum(kept), len(kept))
    return slowest_first(times, calls)


def _settings(runtime: Any, options: Options, profile_prefix: str) -> Any:
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.log_severity_level = 3
    for pool in ("intra_op", "inter_op"):  # spinning threads take the cores that others wait for
        settings.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
    if profile_prefix:
        settings.enable_profiling = True
        settings.profile_file_prefix = profile_prefix
    return settings


def _provider_options(provider: str, options: Options) -> Dict[str, str]:
    if provider == "CPUExecutionProvider":
        return {}
    if provider == "TensorrtExecutionProvider":
        return {"device_id": str(options.device_index), "trt_fp16_enable": str(options.precision == "fp16")}
    return {"device_id": str(options.device_index)}


def _place(provider: str) -> str:
    return "cpu" if provider == "CPUExecutionProvider" else "cuda"


def _type_of(text: str) -> str:
    """`tensor(float)` → float32."""
    name = text[len("tensor(") : -1] if text.startswith("tensor(") else text
    return TYPES.get(name, name)

"""ONNX Runtime, on the CPU and, where its build has the provider, on accelerators."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from benchmodels.runtimes.artifact import Artifact, read_artifact, write_artifact
from benchmodels.runtimes.base import (
    ARTIFACT,
    BF16,
    FP16,
    FP32,
    INT8_DYNAMIC,
    ArtifactFolder,
    Captured,
    Options,
    Session,
    Steps,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.exporting import export_onnx
from benchmodels.runtimes.onnxruntime_session import BoundSession, OrtSession
from benchmodels.runtimes.problems import explaining

PACKAGES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-rocm", "onnxruntime-openvino")
CPU = "CPUExecutionProvider"


class OnnxRuntime:
    """Exported by torch, optimised, run by the provider of the device."""

    name = "onnxruntime"
    kind = ARTIFACT
    accepts: Tuple[str, ...] = (".onnx",)
    precisions: Tuple[str, ...] = (FP32, BF16, FP16, INT8_DYNAMIC)
    # ROCm devices are called "cuda", too.
    providers: Mapping[str, Sequence[str]] = {
        "cpu": (CPU,),
        "cuda": ("CUDAExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider"),
        "rocm": ("ROCMExecutionProvider", "MIGraphXExecutionProvider"),
    }

    def unavailable(self, options: Options) -> Optional[str]:
        if find_spec("onnxruntime") is None:
            return "onnxruntime is not installed: pip install onnxruntime"
        if options.device_type == "cpu" and CPU in self.providers.get("cpu", ()):
            return None
        if self._provider(options) is None:
            wanted = self.providers.get(options.device_type)
            if wanted is None:
                return f"{self.name} has no provider for '{options.device}'"
            return f"this build of onnxruntime has no {' or '.join(wanted)}: pip install onnxruntime-gpu"
        return None

    def version(self) -> str:
        found = module_versions(PACKAGES)
        return next(iter(found.values()), "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions([*PACKAGES, "torch", "onnx", "onnxscript"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        return {}

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        exported = export_onnx(captured, folder, options, steps)
        precision = exported.precision
        if options.precision == INT8_DYNAMIC:
            precision = _quantize(exported.path, steps)
        write_artifact(folder, Artifact(os.path.basename(exported.path), precision, exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        if options.precision == FP32:
            write_artifact(folder, Artifact(os.path.abspath(path)))
        elif options.precision == INT8_DYNAMIC:
            precision = _quantize(path, steps, os.path.join(folder, "model.onnx"))
            write_artifact(folder, Artifact("model.onnx", precision))
        else:
            raise Unsupported("convert", f"a .onnx file is run as it is; to {options.precision} it is not converted")

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        provider = self._provider(options)
        if provider is None:
            raise Unsupported("load", self.unavailable(options) or "no provider", kind="unavailable")
        with explaining("load"):
            session: Session = (OrtSession if provider == CPU else BoundSession)(artifact, provider, options)
        return session

    def _provider(self, options: Options) -> Optional[str]:
        runtime: Any = import_module("onnxruntime")
        there = runtime.get_available_providers()
        return next((name for name in self.providers.get(options.device_type, ()) if name in there), None)


class OnnxRuntimeTensorRT(OnnxRuntime):
    """The same through TensorRT."""

    name = "onnxruntime-tensorrt"
    precisions: Tuple[str, ...] = (FP32, FP16)
    providers: Mapping[str, Sequence[str]] = {"cuda": ("TensorrtExecutionProvider",)}


def _quantize(path: str, steps: Steps, to: Optional[str] = None) -> str:
    """Step "convert": weights of matrix products in int8, their other side quantised as it comes."""
    if find_spec("onnx") is None:
        raise Unsupported("convert", "quantisation needs onnx: pip install onnx", kind="unavailable")
    quantization: Any = import_module("onnxruntime.quantization")
    onnx: Any = import_module("onnx")
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
            raise Unsupported(
                "convert", "it has no product with fixed weights, so there is nothing to quantise to int8"
            )
        if to is None:
            _remove_with_data(path)
            if large:
                onnx.save(onnx.load(aside), path, save_as_external_data=True, location=f"{os.path.basename(path)}.data")
                _remove_with_data(aside)
            else:
                os.replace(aside, path)
    return INT8_DYNAMIC


def _without_shapes_of_weights(onnx: Any, path: str, is_ours: bool) -> Any:
    """The file, if it tells no shapes of weights: exporters do, and some weights are transposed when they are quantised."""
    model = onnx.load(path, load_external_data=False)
    weights = {weight.name for weight in model.graph.initializer}
    told = [value for value in model.graph.value_info if value.name in weights]
    if not told:
        return path
    if not is_ours:
        model = onnx.load(path)
        told = [value for value in model.graph.value_info if value.name in weights]
    for value in told:
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

"""OpenVINO: the ONNX export as its own intermediate representation, compiled when it is loaded."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Dict, Mapping, Optional, Sequence, Union

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
from benchmodels.runtimes.openvino_session import OpenVinoSession
from benchmodels.runtimes.problems import explaining

DEVICES = {"cpu": "CPU", "gpu": "GPU", "xpu": "GPU", "npu": "NPU"}


class OpenVino:
    """Weights are kept in float32; in which precision it computes is told to the device, whose default may be bfloat16."""

    name = "openvino"
    kind = ARTIFACT
    accepts = (".xml", ".onnx")
    precisions = (FP32, BF16, FP16, INT8_DYNAMIC)

    def unavailable(self, options: Options) -> Optional[str]:
        if find_spec("openvino") is None:
            return "openvino is not installed: pip install openvino"
        if options.device_type == "cpu":
            return None
        there = openvino().Core().available_devices
        if device_name(options) not in (*there, *(name.partition(".")[0] for name in there)):
            return f"openvino finds no {options.device} here; it has {', '.join(there)}"
        return None

    def version(self) -> str:
        return self.versions().get("openvino", "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions(["openvino", "nncf", "torch", "onnx", "onnxscript"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        return {}

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        _require_nncf(options)
        between = os.path.join(folder, "onnx")
        os.mkdir(between)
        # Precision is OpenVINO's to choose when it compiles, so the export is the model as it is.
        exported = export_onnx(captured, between, options._replace(precision=FP32), steps)
        _convert(exported.path, folder, options, steps, {})
        shutil.rmtree(between)
        write_artifact(folder, Artifact("model.xml", _written(options), exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        _require_nncf(options)
        _convert(path, folder, options, steps, shapes)
        write_artifact(folder, Artifact("model.xml", _written(options)))

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        with explaining("load"):
            session: Session = OpenVinoSession(openvino(), artifact, device_name(options), options)
        return session


def openvino() -> Any:
    """OpenVINO without its telemetry: importing it would report that to a server, from a thread beside what is measured."""
    if "openvino" in sys.modules:
        return sys.modules["openvino"]
    absent: Any = None  # how Python marks a module that must not be found
    before = sys.modules.get("openvino_telemetry")
    sys.modules["openvino_telemetry"] = absent
    try:
        return import_module("openvino")
    finally:
        del sys.modules["openvino_telemetry"]
        if before is not None:
            sys.modules["openvino_telemetry"] = before


def device_name(options: Options) -> str:
    """ "gpu:1" is GPU.1."""
    name = DEVICES.get(options.device_type, options.device_type.upper())
    return f"{name}.{options.device_index}" if ":" in options.device else name


def _convert(path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]) -> None:
    """Step "convert": reads a model and writes model.xml and model.bin."""
    ov = openvino()
    with steps.step("convert"), explaining("convert"):
        model = ov.Core().read_model(path)
        if shapes and model.is_dynamic():
            model.reshape({name: list(shape) for name, shape in shapes.items()})
        if options.precision == INT8_DYNAMIC:
            nncf: Any = import_module("nncf")
            model = nncf.compress_weights(model)
        # Left out, this would round the weights to float16 without a word.
        ov.save_model(model, os.path.join(folder, "model.xml"), compress_to_fp16=False)


def _require_nncf(options: Options) -> None:
    if options.precision == INT8_DYNAMIC and find_spec("nncf") is None:
        raise Unsupported("convert", "int8 weights for openvino are made by nncf: pip install nncf", kind="unavailable")


def _written(options: Options) -> str:
    return INT8_DYNAMIC if options.precision == INT8_DYNAMIC else FP32

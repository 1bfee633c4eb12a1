"""MNN: the ONNX export in its own format, written by its converter in a process of its own.

The converter has no IsNaN, which torch's exporter writes into every masked attention, and takes each Gelu for its tanh
approximation, which is off by 1e-4. Both are rewritten with other operators, from which MNN makes one exact Gelu again.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Callable, List, Mapping, NamedTuple, Sequence

from benchmodels.runtimes.base import BF16, FP32, Captured, RuntimeOptions, Session, StepTimer, Unsupported
from benchmodels.runtimes.families import OnnxFamily
from benchmodels.runtimes.parts.artifact import ArtifactInput, BuiltModel, write_artifact
from benchmodels.runtimes.parts.onnx_graph import graph_inputs, value_type
from benchmodels.runtimes.parts.problems import explaining, run_converter
from benchmodels.types import Value
from benchwright_runtimes.mnn_session import Conversion, MnnSession, Port

MODEL, CONVERTED = "model.mnn", "converted.json"
# The program `mnnconvert` reports to a server, and runs pip to be able to; what it calls does neither.
CONVERTER = "import sys, _tools; _tools.mnnconvert(sys.argv)"
SETTINGS = (
    "--useGeluApproximation=0",
    "--saveExternalData",  # its own format is limited to 2 GB
    "--bizCode=benchwright",
)
# Some LSTMs crash it; this option keeps them whole, but breaks some GRUs, so it is only a second try.
KEEPING_LSTM = "--useOriginRNNImpl"
SUCCESS, FAILURE = "Converted Success!", "Converted Failed!"
HAS_SUBGRAPHS = "The model has subgraphs"
_NOT_SUPPORTED = re.compile(r"Not Support:\s*ONNX::(\w+)")
_PREFIX = re.compile(r"^\[[\d:]+\] :\d+: ")
# What the converter prints for every model.
_USUAL = (
    "The device supports",
    "Start to ",
    "ONNX Model",
    "Save Weight",
    "inputTensors",
    "outputTensors",
    SUCCESS,
    FAILURE,
)
REWRITTEN = "rewritten.onnx"
# Scalars in rewritten nodes.
_CONSTANTS = {"mnn_zero": 0.0, "mnn_half": 0.5, "mnn_one": 1.0, "mnn_root_of_half": math.sqrt(0.5)}


class MnnGraph(NamedTuple):
    """An ONNX file for the converter, with its inputs and outputs."""

    path: str
    inputs: Sequence[Port]
    outputs: Sequence[Port]


class Mnn(OnnxFamily):
    """On the CPU, in float32: its Python package has no kernels for int8 or bfloat16 on x86."""

    name = "mnn"
    packages = ("MNN",)
    modules = ("MNN",)
    install = "'benchwright-runtimes[mnn]'"
    cpu_only = True

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        self.require_precision(options, "convert")
        with self.exported(captured, folder, options, steps) as exported:
            if exported.precision == BF16:
                raise Unsupported("convert", "the model is in bfloat16, which MNN does not have")
            _convert(exported.path, os.path.dirname(exported.path), folder, steps)
        write_artifact(folder, BuiltModel(MODEL, FP32, exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        self.require_precision(options, "convert")
        self.require_onnx()
        with self.scratch(folder) as between:
            graph = _convert(path, between, folder, steps)
        inputs = [ArtifactInput(port.name, port.name, port.dtype) for port in graph.inputs]
        write_artifact(folder, BuiltModel(MODEL, FP32, inputs, [port.name for port in graph.outputs]))

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        return MnnSession(artifact, _read_converted(artifact.folder), options)


def _convert(path: str, between: str, folder: str, steps: StepTimer) -> MnnGraph:
    """Step "convert": writes model.mnn and its weights."""
    with steps.step("convert"), explaining("convert"):
        graph = graph_for_mnn(path, between)
        of_bfloat16 = [port.name for port in (*graph.inputs, *graph.outputs) if port.dtype == "bfloat16"]
        if of_bfloat16:
            raise Unsupported("convert", f"{of_bfloat16[0]} is bfloat16, which MNN does not have")
        made = os.path.join(os.path.abspath(folder), MODEL)
        done = _converter(os.path.abspath(graph.path), made, between, SETTINGS)
        if done.returncode < 0:
            done = _converter(os.path.abspath(graph.path), made, between, (*SETTINGS, KEEPING_LSTM))
        # Its exit code is always 0.
        if done.returncode != 0 or SUCCESS not in done.stdout or not os.path.isfile(made):
            raise _failed(done.stdout, done.returncode)
        _write_converted(folder, Conversion(graph.outputs, HAS_SUBGRAPHS in done.stdout))
    return graph


def _converter(model: str, made: str, cwd: str, settings: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs in the build folder, so that it cannot import a `_tools` of the user."""
    words = ["-f", "ONNX", "--modelFile", model, "--MNNModel", made, *settings]
    return run_converter([sys.executable, "-c", CONVERTER, *words], cwd)


def _write_converted(folder: str, converted: Conversion) -> None:
    with open(os.path.join(folder, CONVERTED), "w", encoding="utf-8") as file:
        json.dump(converted._asdict(), file)


def _read_converted(folder: str) -> Conversion:
    with open(os.path.join(folder, CONVERTED), encoding="utf-8") as file:
        raw = json.load(file)
    return Conversion([Port(*each) for each in raw["outputs"]], raw["subgraphs"])


def _failed(said: str, code: int) -> Unsupported:
    lines = [_PREFIX.sub("", line).strip() for line in said.splitlines()]
    printed = " ".join([line for line in lines if line and not any(usual in line for usual in _USUAL)][-4:])
    operators: List[str] = _NOT_SUPPORTED.findall(said)
    if operators:
        return Unsupported("convert", f"unsupported operator {operators[0]}: {printed}", operators[0])
    how = f"was killed by signal {-code}" if code < 0 else f"failed (exit code {code})"
    return Unsupported("convert", f"MNN's converter {how}: {printed or 'no output'}", kind="error")


def graph_for_mnn(path: str, folder: str) -> MnnGraph:
    """The file at `path` itself or, if it needs rewriting, another one in `folder`."""
    onnx = import_module("onnx")
    model = onnx.load(path, load_external_data=False)
    inputs, outputs = list(map(_port, graph_inputs(model))), list(map(_port, model.graph.output))
    nodes = [_rewritten(onnx, node) for node in model.graph.node]
    if all(len(each) == 1 for each in nodes):
        return MnnGraph(path, inputs, outputs)
    onnx.load_external_data_for_model(model, os.path.dirname(os.path.abspath(path)))
    del model.graph.node[:]
    model.graph.node.extend(node for each in nodes for node in each)
    scalar = onnx.TensorProto.FLOAT
    model.graph.initializer.extend(
        onnx.helper.make_tensor(name, scalar, [], [value]) for name, value in _CONSTANTS.items()
    )
    to = os.path.join(folder, REWRITTEN)
    onnx.save(model, to, save_as_external_data=True, location=f"{REWRITTEN}.data")
    return MnnGraph(to, inputs, outputs)


def _rewritten(onnx: ModuleType, node: Any) -> List[Any]:
    if node.domain not in ("", "ai.onnx"):
        return [node]
    if node.op_type == "IsNaN":
        return _is_nan(onnx.helper.make_node, node.input[0], node.output[0])
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    if node.op_type == "Gelu" and attributes.get("approximate", b"none") == b"none":
        return _gelu(onnx.helper.make_node, node.input[0], node.output[0])
    return [node]


def _is_nan(made: Callable[..., Any], x: str, y: str) -> List[Any]:
    """Neither below zero nor at least zero: MNN's compiler flags make `x == x` always true."""
    return [
        made("Less", [x, "mnn_zero"], [f"{y}_below"]),
        made("GreaterOrEqual", [x, "mnn_zero"], [f"{y}_above"]),
        made("Or", [f"{y}_below", f"{y}_above"], [f"{y}_number"]),
        made("Not", [f"{y}_number"], [y]),
    ]


def _gelu(made: Callable[..., Any], x: str, y: str) -> List[Any]:
    """In the form that MNN recognises as exact."""
    return [
        made("Mul", [x, "mnn_root_of_half"], [f"{y}_scaled"]),
        made("Erf", [f"{y}_scaled"], [f"{y}_erf"]),
        made("Add", [f"{y}_erf", "mnn_one"], [f"{y}_raised"]),
        made("Mul", [x, f"{y}_raised"], [f"{y}_twice"]),
        made("Mul", [f"{y}_twice", "mnn_half"], [y]),
    ]


def _port(value: Value) -> Port:
    return Port(value.name, value_type(value), len(value.type.tensor_type.shape.dim))

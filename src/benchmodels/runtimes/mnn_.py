"""MNN: the ONNX export in its own format, made by its converter in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from benchmodels.runtimes.artifact import Artifact, ArtifactInput, read_artifact, write_artifact
from benchmodels.runtimes.base import (
    ARTIFACT,
    BF16,
    FP32,
    ArtifactFolder,
    Captured,
    Options,
    Session,
    Steps,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.exporting import export_onnx
from benchmodels.runtimes.mnn_graph import Graph, Port, graph_for_mnn
from benchmodels.runtimes.mnn_session import Converted, MnnSession
from benchmodels.runtimes.problems import explaining

MODEL, CONVERTED = "model.mnn", "converted.json"
# The program `mnnconvert` would report to a server, and call pip to be able to; what it calls does neither.
CONVERTER = "import sys, _tools; _tools.mnnconvert(sys.argv)"
SETTINGS = (
    "--useGeluApproximation=0",
    "--saveExternalData",  # its own format ends at 2 GB
    "--bizCode=benchwright",
)
# Some LSTMs make it crash: it is then told to keep such operators whole, which goes wrong with some GRUs.
KEEPING_LSTM = "--useOriginRNNImpl"
SUCCESS, FAILURE = "Converted Success!", "Converted Failed!"
HAS_SUBGRAPHS = "The model has subgraphs"
_NOT_SUPPORTED = re.compile(r"Not Support:\s*ONNX::(\w+)")
_PREFIX = re.compile(r"^\[[\d:]+\] :\d+: ")
# What the converter says of every model.
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


class Mnn:
    """On the CPU, in float32: its package for Python has no kernels for int8 or bfloat16 on x86."""

    name = "mnn"
    kind = ARTIFACT
    accepts = (".onnx",)
    precisions = (FP32,)

    def unavailable(self, options: Options) -> Optional[str]:
        if options.device_type != "cpu":
            return f"{self.name} runs on the CPU here, not on {options.device}"
        if find_spec("MNN") is None:
            return "MNN is not installed: pip install 'benchwright[mnn]'"
        return None

    def version(self) -> str:
        return self.versions().get("MNN", "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions(["MNN", "torch", "onnx", "onnxscript"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        return {}

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        self._require(options)
        between = os.path.join(folder, "onnx")
        os.mkdir(between)
        exported = export_onnx(captured, between, options, steps)
        if exported.precision == BF16:
            raise Unsupported("convert", "the model is in bfloat16, which MNN does not have")
        _convert(exported.path, between, folder, steps)
        shutil.rmtree(between)
        write_artifact(folder, Artifact(MODEL, FP32, exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        self._require(options)
        if find_spec("onnx") is None:
            raise Unsupported("convert", "reading .onnx files needs onnx: pip install onnx", kind="unavailable")
        between = os.path.join(folder, "onnx")
        os.mkdir(between)
        graph = _convert(path, between, folder, steps)
        shutil.rmtree(between)
        inputs = [ArtifactInput(port.name, port.name, port.dtype) for port in graph.inputs]
        write_artifact(folder, Artifact(MODEL, FP32, inputs, [port.name for port in graph.outputs]))

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        with explaining("load"):
            session: Session = MnnSession(artifact, _read_converted(what.folder), options)
        return session

    def _require(self, options: Options) -> None:
        if options.precision not in self.precisions:
            raise Unsupported("convert", f"{self.name} does not do {options.precision}")


def _convert(path: str, between: str, folder: str, steps: Steps) -> Graph:
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
        # It exits with 0 whatever happened.
        if done.returncode != 0 or SUCCESS not in done.stdout or not os.path.isfile(made):
            raise _failed(done.stdout, done.returncode)
        _write_converted(folder, Converted(graph.outputs, HAS_SUBGRAPHS in done.stdout))
    return graph


def _converter(model: str, made: str, cwd: str, settings: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Called in the folder of the build, lest a `_tools` of the user be found."""
    return subprocess.run(
        [sys.executable, "-c", CONVERTER, "-f", "ONNX", "--modelFile", model, "--MNNModel", made, *settings],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def _write_converted(folder: str, converted: Converted) -> None:
    with open(os.path.join(folder, CONVERTED), "w", encoding="utf-8") as file:
        json.dump(converted._asdict(), file)


def _read_converted(folder: str) -> Converted:
    with open(os.path.join(folder, CONVERTED), encoding="utf-8") as file:
        raw = json.load(file)
    return Converted([Port(*each) for each in raw["outputs"]], raw["subgraphs"])


def _failed(said: str, code: int) -> Unsupported:
    lines = [_PREFIX.sub("", line).strip() for line in said.splitlines()]
    told = " ".join([line for line in lines if line and not any(usual in line for usual in _USUAL)][-4:])
    operators: List[str] = _NOT_SUPPORTED.findall(said)
    if operators:
        return Unsupported("convert", f"unsupported operator {operators[0]}: {told}", operators[0])
    how = f"was killed by signal {-code}" if code < 0 else f"failed (exit code {code})"
    return Unsupported("convert", f"MNN's converter {how}: {told or 'it said nothing'}", kind="error")

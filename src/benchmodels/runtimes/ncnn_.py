"""ncnn: the model traced by torch and converted by pnnx, ncnn's own converter, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from benchmodels.runtimes.artifact import Artifact, ArtifactInput, read_artifact, write_artifact
from benchmodels.runtimes.base import (
    ARTIFACT,
    FP32,
    ArtifactFolder,
    Captured,
    Options,
    Session,
    Steps,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.exporting import FlatModel, exporting, flat_model
from benchmodels.runtimes.ncnn_session import NcnnOutput, NcnnSession
from benchmodels.runtimes.problems import explaining

MODEL, WEIGHTS, SCRIPT, CONVERTED = "model.param", "model.bin", "model_ncnn.py", "converted.json"
NAMES = (f"ncnnparam={MODEL}", f"ncnnbin={WEIGHTS}", f"ncnnpy={SCRIPT}")
# How pnnx names the types of inputs; ncnn itself has whole numbers of 32 bits and float32.
TYPES = {"float32": "f32", "int64": "i64", "int32": "i32"}
# In the script that pnnx writes beside the model: which dimension of an input or output is the batch.
_INPUT = re.compile(r'ex\.input\("(\w+)", ncnn\.Mat\(\w+\.numpy\(\)(?:, batch_index=(\d+))?\)')
_OUTPUT = re.compile(r"torch\.from_numpy\((\w+)\.numpy\((?:batch_index=(\d+))?\)")
NO_BATCH = 233  # as ncnn says it
MAX_SAID = 400


class Traced(NamedTuple):
    """`outputs`: as the model returned them when it was traced."""

    path: str
    flat: FlatModel
    outputs: Sequence[Any]


class Ncnn:
    """On the CPU, in float32. It has layers for what networks for images do, and few others."""

    name = "ncnn"
    kind = ARTIFACT
    accepts = ()
    precisions = (FP32,)

    def unavailable(self, options: Options) -> Optional[str]:
        if options.device_type != "cpu":
            return f"{self.name} runs on the CPU here, not on {options.device}"
        missing = [name for name in ("ncnn", "pnnx") if find_spec(name) is None]
        if missing:
            return f"{' and '.join(missing)} not installed: pip install 'benchwright[ncnn]'"
        return None

    def version(self) -> str:
        return self.versions().get("ncnn", "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions(["ncnn", "pnnx", "torch"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        return {}

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        if options.precision not in self.precisions:
            raise Unsupported("export", f"{self.name} does not do {options.precision}")
        between = os.path.join(folder, "traced")
        os.mkdir(between)
        traced = _trace(captured, between, options, steps)
        with steps.step("convert"), explaining("convert"):
            ports = _convert(traced, between, folder)
        shutil.rmtree(between)
        inputs = [
            ArtifactInput(name, port, _dtype(tensor))
            for name, port, tensor in zip(traced.flat.names, ports, traced.flat.tensors)
        ]
        write_artifact(folder, Artifact(MODEL, FP32, inputs, traced.flat.outputs))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        raise Unsupported("load", f"{self.name} takes no model files")

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        with explaining("load"):
            with open(os.path.join(what.folder, CONVERTED), encoding="utf-8") as file:
                raw = json.load(file)
            outputs = [NcnnOutput(**each) for each in raw["outputs"]]
            weights = os.path.join(what.folder, WEIGHTS)
            session: Session = NcnnSession(artifact, weights, raw["batches"], outputs, options)
        return session


def _trace(captured: Captured, folder: str, options: Options, steps: Steps) -> Traced:
    """Step "export"."""
    torch: Any = import_module("torch")
    path = os.path.join(folder, "model.pt")
    with steps.step("export"), explaining("export"), exporting():
        flat = flat_model(captured, options)
        if flat.precision != FP32:
            raise Unsupported("export", f"the model is in {flat.precision}, and ncnn computes in float32")
        for name, tensor in zip(flat.names, flat.tensors):
            if _dtype(tensor) not in TYPES:
                raise Unsupported("export", f"input {name} is {_dtype(tensor)}; ncnn takes {', '.join(TYPES)}")
            if not tensor.dim():
                raise Unsupported("export", f"input {name} is a single number without dimensions; ncnn takes none such")
        outputs = flat.module(*flat.tensors)
        torch.jit.trace(flat.module, flat.tensors, check_trace=False).save(path)
    return Traced(path, flat, outputs)


def _convert(traced: Traced, between: str, folder: str) -> List[str]:
    """Writes the network, its weights and what else a session must know; the names of its inputs."""
    _run_pnnx(traced, between)
    _check_layers(os.path.join(between, MODEL))
    with open(os.path.join(between, SCRIPT), encoding="utf-8") as file:
        script = file.read()
    inputs, outputs = _INPUT.findall(script), _OUTPUT.findall(script)
    there, wanted = (len(inputs), len(outputs)), (len(traced.flat.tensors), len(traced.outputs))
    if there != wanted:
        text = f"pnnx left {there[0]} inputs and {there[1]} outputs; the model has {wanted[0]} and {wanted[1]}"
        raise Unsupported("convert", text)
    described = [
        _described(port, batch, name, tensor)
        for (port, batch), name, tensor in zip(outputs, traced.flat.outputs, traced.outputs)
    ]
    for name in (MODEL, WEIGHTS):
        os.replace(os.path.join(between, name), os.path.join(folder, name))
    with open(os.path.join(folder, CONVERTED), "w", encoding="utf-8") as file:
        batches = [int(batch or NO_BATCH) for _, batch in inputs]
        json.dump({"batches": batches, "outputs": [each._asdict() for each in described]}, file)
    return [port for port, _ in inputs]


def _run_pnnx(traced: Traced, between: str) -> None:
    shapes = [f"[{','.join(map(str, t.shape))}]{TYPES[_dtype(t)]}" for t in traced.flat.tensors]
    spec = find_spec("pnnx")
    folders = None if spec is None else spec.submodule_search_locations
    program = os.path.join((folders or [""])[0], "pnnx")  # its Python would import torch once more
    done = subprocess.run(
        # Left out, fp16=0 would be 1: weights rounded without a word.
        [program, traced.path, f"inputshape={','.join(shapes)}", "fp16=0", *NAMES],
        cwd=between,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0 or not all(
        os.path.isfile(os.path.join(between, each)) for each in (MODEL, WEIGHTS, SCRIPT)
    ):
        how = f"was killed by signal {-done.returncode}" if done.returncode < 0 else "failed"
        said = " ".join([line for line in done.stdout.splitlines() if line.strip() and " = " not in line][-2:])
        raise Unsupported("convert", f"pnnx {how}: {said[-MAX_SAID:] or 'it said nothing'}", kind="error")


def _described(port: str, batch: str, name: str, tensor: Any) -> NcnnOutput:
    if not tensor.is_floating_point():
        raise Unsupported("convert", f"output {name} is {_dtype(tensor)}; ncnn's are numbers in float32")
    return NcnnOutput(port, int(batch or NO_BATCH), _dtype(tensor), list(tensor.shape))


def _check_layers(path: str) -> None:
    """pnnx writes operators that it cannot convert as layers that ncnn does not have."""
    ncnn: Any = import_module("ncnn")
    with open(path, encoding="utf-8") as file:
        kinds = [line.split()[0] for line in file.read().splitlines()[2:] if line.strip()]
    unknown = [kind for kind in kinds if ncnn.layer_to_index(kind) < 0]
    if unknown:
        names = ", ".join(dict.fromkeys(unknown))
        raise Unsupported("convert", f"unsupported operator {unknown[0]}: ncnn has no layer for {names}", unknown[0])


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).partition(".")[2]

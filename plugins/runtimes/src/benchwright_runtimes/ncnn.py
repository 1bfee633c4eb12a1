"""ncnn: the model traced by torch and converted by pnnx, ncnn's own converter, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib import import_module
from importlib.util import find_spec
from typing import Any, List, NamedTuple, Sequence

from benchmodels.runtimes.base import FP32, Captured, OpTime, RuntimeOptions, Session, StepTimer, Unsupported
from benchmodels.runtimes.families import ArtifactRuntime
from benchmodels.runtimes.parts.artifact import (
    ArtifactInput,
    BuiltModel,
    as_type,
    by_name,
    in_order,
    torch_dtype,
    write_artifact,
)
from benchmodels.runtimes.parts.export import FlatModel, exporting, flat_model
from benchmodels.runtimes.parts.problems import explaining, run_converter
from benchmodels.runtimes.parts.sessions import ArtifactSession, SharedStream, only_the_whole, port_names
from benchmodels.types import Array, Arrays, Details, ModelInputs, Prepared, Tensor, Value

MODEL, WEIGHTS, SCRIPT, CONVERTED = "model.param", "model.bin", "model_ncnn.py", "converted.json"
NAMES = (f"ncnnparam={MODEL}", f"ncnnbin={WEIGHTS}", f"ncnnpy={SCRIPT}")
# pnnx's names of input types; ncnn itself has 32-bit integers and float32.
TYPES = {"float32": "f32", "int64": "i64", "int32": "i32"}
# In the script that pnnx writes beside the model: the batch dimension of an input or output.
_INPUT = re.compile(r'ex\.input\("(\w+)", ncnn\.Mat\(\w+\.numpy\(\)(?:, batch_index=(\d+))?\)')
_OUTPUT = re.compile(r"torch\.from_numpy\((\w+)\.numpy\((?:batch_index=(\d+))?\)")
NO_BATCH = 233  # ncnn's number for it
MAX_SAID = 400


class NcnnOutput(NamedTuple):
    """`batch`: the dimension that ncnn keeps apart; `dtype` and `shape`: as the model returns it."""

    port: str
    batch: int
    dtype: str
    shape: Sequence[int]


class Traced(NamedTuple):
    """`outputs`: what the model returned while it was traced."""

    path: str
    flat: FlatModel
    outputs: Sequence[Tensor]


class Ncnn(ArtifactRuntime):
    """On the CPU, in float32. Its layers cover image networks and little else."""

    name = "ncnn"
    packages = ("ncnn",)
    build_packages = ("pnnx", "torch")
    modules = ("ncnn", "pnnx")
    install = "'benchwright-runtimes[ncnn]'"
    cpu_only = True

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        self.require_precision(options)
        between = os.path.join(folder, "traced")
        os.mkdir(between)
        traced = _trace(captured, between, options, steps)
        with steps.step("convert"), explaining("convert"):
            ports = _convert(traced, between, folder)
        shutil.rmtree(between)
        inputs = [
            ArtifactInput(name, port, torch_dtype(tensor))
            for name, port, tensor in zip(traced.flat.names, ports, traced.flat.tensors)
        ]
        write_artifact(folder, BuiltModel(MODEL, FP32, inputs, traced.flat.outputs))

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        with open(os.path.join(artifact.folder, CONVERTED), encoding="utf-8") as file:
            raw = json.load(file)
        outputs = [NcnnOutput(**each) for each in raw["outputs"]]
        return NcnnSession(artifact, raw["batches"], outputs, options)


def _trace(captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> Traced:
    """Step "export"."""
    torch = import_module("torch")
    path = os.path.join(folder, "model.pt")
    with steps.step("export"), explaining("export"), exporting():
        flat = flat_model(captured, options)
        if flat.precision != FP32:
            raise Unsupported("export", f"the model is in {flat.precision}; ncnn computes in float32")
        for name, tensor in zip(flat.names, flat.tensors):
            if torch_dtype(tensor) not in TYPES:
                raise Unsupported("export", f"input {name} is {torch_dtype(tensor)}; ncnn takes {', '.join(TYPES)}")
            if not tensor.dim():
                raise Unsupported("export", f"input {name} has no dimensions; ncnn takes no such inputs")
        outputs = flat.module(*flat.tensors)
        torch.jit.trace(flat.module, flat.tensors, check_trace=False).save(path)
    return Traced(path, flat, outputs)


def _convert(traced: Traced, between: str, folder: str) -> List[str]:
    """Writes the network, its weights and what else a session needs; returns the names of its inputs."""
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
    shapes = [f"[{','.join(map(str, t.shape))}]{TYPES[torch_dtype(t)]}" for t in traced.flat.tensors]
    spec = find_spec("pnnx")
    folders = None if spec is None else spec.submodule_search_locations
    program = os.path.join((folders or [""])[0], "pnnx")  # its Python wrapper would import torch again
    # The default, fp16=1, silently rounds the weights.
    done = run_converter([program, traced.path, f"inputshape={','.join(shapes)}", "fp16=0", *NAMES], between)
    if done.returncode != 0 or not all(
        os.path.isfile(os.path.join(between, each)) for each in (MODEL, WEIGHTS, SCRIPT)
    ):
        how = f"was killed by signal {-done.returncode}" if done.returncode < 0 else "failed"
        said = " ".join([line for line in done.stdout.splitlines() if line.strip() and " = " not in line][-2:])
        raise Unsupported("convert", f"pnnx {how}: {said[-MAX_SAID:] or 'no output'}", kind="error")


def _described(port: str, batch: str, name: str, tensor: Tensor) -> NcnnOutput:
    if not tensor.is_floating_point():
        raise Unsupported("convert", f"output {name} is {torch_dtype(tensor)}; ncnn's outputs are float32")
    return NcnnOutput(port, int(batch or NO_BATCH), torch_dtype(tensor), list(tensor.shape))


def _check_layers(path: str) -> None:
    """pnnx writes operators it cannot convert as layers that ncnn does not have."""
    ncnn = import_module("ncnn")
    with open(path, encoding="utf-8") as file:
        kinds = [line.split()[0] for line in file.read().splitlines()[2:] if line.strip()]
    unknown = [kind for kind in kinds if ncnn.layer_to_index(kind) < 0]
    if unknown:
        names = ", ".join(dict.fromkeys(unknown))
        raise Unsupported("convert", f"unsupported operator {unknown[0]}: ncnn has no layer for {names}", unknown[0])


class NcnnSession(ArtifactSession):
    """A call creates an extractor, sets the inputs and fetches all outputs: ncnn has no single call for that."""

    def __init__(
        self, artifact: BuiltModel, batches: Sequence[int], outputs: Sequence[NcnnOutput], options: RuntimeOptions
    ) -> None:
        super().__init__(artifact, options)
        self._ncnn = import_module("ncnn")
        self._batches = batches
        self._outputs = outputs
        self._net = self._ncnn.Net()
        switch_off_rounding(self._net.opt)
        self._net.opt.use_vulkan_compute = False
        self._net.opt.num_threads = options.threads
        weights = os.path.join(artifact.folder, WEIGHTS)
        if self._net.load_param(artifact.model) != 0 or self._net.load_model(weights) != 0:
            raise Unsupported("load", f"ncnn cannot load {artifact.model}; see the log", kind="error")
        self._extractor = self._net.create_extractor
        blobs = [blob.name for blob in self._net.blobs()]
        self._ports = port_names(artifact)
        self._inputs = [blobs.index(port) for port in self._ports]
        self._wanted = [blobs.index(each.port) for each in outputs]
        self.details: Details = {
            "threads": self._net.opt.num_threads,
            "wait_policy": os.environ.get("OMP_WAIT_POLICY", "default").lower(),
            "winograd": self._net.opt.use_winograd_convolution,
        }

    def prepare(self, inputs: ModelInputs) -> Any:
        arrays = in_order(inputs, self._ports, self._artifact)
        return [
            (blob, self._mat(array, each.dtype, batch))
            for blob, array, each, batch in zip(self._inputs, arrays, self._artifact.inputs, self._batches)
        ]

    def run(self, prepared: Prepared) -> Any:
        extractor = self._extractor()
        for blob, mat in prepared:
            extractor.input(blob, mat)
        extract = extractor.extract
        return [extract(blob) for blob in self._wanted]

    def outputs(self, result: Value) -> Arrays:
        failed = [each.port for each, (code, _) in zip(self._outputs, result) if code != 0]
        if failed:
            raise Unsupported("first_run", f"ncnn could not compute {', '.join(failed)}; see the log", kind="error")
        values = [_read(mat, each) for each, (_, mat) in zip(self._outputs, result)]
        return by_name(values, [each.port for each in self._outputs], self._artifact)

    def new_stream(self) -> Session:
        """Threads may use extractors of one network concurrently."""
        return SharedStream(self)

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        """One row: ncnn's package does not time its layers."""
        return only_the_whole(lambda: self.run(prepared), calls)

    def close(self) -> None:
        self._net = self._extractor = None

    def _mat(self, array: Array, dtype: str, batch: int) -> Any:
        numpy = import_module("numpy")
        value = numpy.asarray(array)
        if not value.size:
            raise Unsupported("first_run", "an input is empty, and ncnn takes no empty arrays")
        if dtype.startswith("int") and (value.max() > 2**31 - 1 or value.min() < -(2**31)):
            raise Unsupported("first_run", "an input has integers of more than 32 bits, which ncnn does not have")
        own = as_type(value, "int32" if dtype.startswith("int") else "float32")
        return self._ncnn.Mat(own, batch_index=batch).clone()  # it is a view of `own`


def switch_off_rounding(option: Any) -> None:
    """By default ncnn keeps weights and activations in float16 if the processor supports it."""
    for name in dir(option):
        if name.startswith(("use_fp16_", "use_bf16_", "use_int8_")):
            setattr(option, name, False)


def _read(mat: Any, output: NcnnOutput) -> Array:
    """A copy. ncnn's arrays have at least one dimension and drop some of size 1."""
    array = as_type(mat.numpy(batch_index=output.batch), output.dtype)
    wanted = [size for size in output.shape if size != 1]
    return array.reshape(output.shape) if [size for size in array.shape if size != 1] == wanted else array

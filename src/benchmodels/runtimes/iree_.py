"""IREE: the ONNX export as MLIR, compiled ahead of time for the processor it is built on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from benchmodels.runtimes.artifact import Artifact, ArtifactInput, read_artifact, write_artifact
from benchmodels.runtimes.base import (
    ARTIFACT,
    BF16,
    FP16,
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
from benchmodels.runtimes.host import cpu_kind
from benchmodels.runtimes.iree_session import FUNCTION, MODULE, OUTPUT_TYPES, SCOPE, WEIGHTS, IreeSession
from benchmodels.runtimes.problems import explaining

PACKAGES = ("iree-base-compiler", "iree-base-runtime")
FLAGS = (
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    # Left out, float64 would become float32 without a word.
    "--iree-input-demote-f64-to-f32=false",
)
OLDEST_OPSET = 17  # what IREE's importer is made for; older files are converted to it
SMALL = 100  # weights of fewer elements are constants of the program
LARGE = 1 << 28  # so many weights are not read into memory while the graph is looked at
# Only this complaint is about an operator; others show the line of a model where a fault of the compiler came to light.
_NOT_LEGAL = re.compile(r"\berror: failed to legalize operation '([\w.]+)'([^\n]*)")


class Iree:
    """Weights are in a file beside the compiled program; one thread runs without workers, more are a pool of them."""

    name = "iree"
    kind = ARTIFACT
    accepts = (".onnx",)
    precisions = (FP32, BF16, FP16)

    def unavailable(self, options: Options) -> Optional[str]:
        if options.device_type != "cpu":
            return f"{self.name} is used on the CPU only, not on '{options.device}'"
        missing = [f"iree-base-{part}" for part in ("compiler", "runtime") if not _installed(part)]
        if missing:
            return f"{self.name} lacks {' and '.join(missing)}: pip install 'benchwright[iree]'"
        return None

    def version(self) -> str:
        return self.versions().get("iree-base-runtime", "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions([*PACKAGES, "torch", "onnx", "onnxscript"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        """Its code is for one kind of processor; any number of threads may run it."""
        return {"cpu": cpu_kind(), "flags": list(FLAGS)}

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        if options.precision not in self.precisions:
            raise Unsupported("export", f"{self.name} does not do {options.precision}")
        between = os.path.join(folder, "between")
        os.mkdir(between)
        exported = export_onnx(captured, between, options, steps)
        if exported.precision == BF16:
            _check_types(exported.path)
        _convert(exported.path, between, folder, steps)
        _compile(between, folder, steps)
        shutil.rmtree(between)
        write_artifact(folder, Artifact(MODULE, exported.precision, exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        if options.precision != FP32:
            raise Unsupported("convert", f"a .onnx file is run as it is; to {options.precision} it is not converted")
        if find_spec("onnx") is None:
            raise Unsupported("convert", "reading .onnx files needs onnx: pip install onnx", kind="unavailable")
        onnx: Any = import_module("onnx")
        between = os.path.join(folder, "between")
        os.mkdir(between)
        with explaining("convert"):
            model = onnx.load(path, load_external_data=False)
            given = {each.name for each in model.graph.initializer}
            inputs = [each for each in model.graph.input if each.name not in given]
            _set_shapes(inputs, shapes)
            model.graph.name = FUNCTION
            own = os.path.join(between, "model.onnx")
            onnx.save(model, own)
        _convert(own, between, folder, steps, os.path.dirname(os.path.abspath(path)))
        _compile(between, folder, steps)
        shutil.rmtree(between)
        described = [ArtifactInput(each.name, each.name, _type_of(onnx, each)) for each in inputs]
        names = [each.name for each in model.graph.output]
        write_artifact(folder, Artifact(MODULE, _precision_of(onnx, model.graph.initializer), described, names))

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        with explaining("load"):
            session: Session = IreeSession(artifact, options)
        return session


def _installed(part: str) -> bool:
    return find_spec("iree") is not None and find_spec(f"iree.{part}") is not None


def _convert(path: str, between: str, folder: str, steps: Steps, data_folder: str = "") -> None:
    """Step "convert": model.mlir, the weights in IREE's own archive, and what a program does not tell of its outputs."""
    onnx: Any = import_module("onnx")
    importer: Any = import_module("iree.compiler.tools.import_onnx.__main__")
    arguments = [path, "-o", os.path.join(between, "model.mlir"), "--externalize-params", f"--params-scope={SCOPE}"]
    arguments += ["--save-params-to", os.path.join(folder, WEIGHTS), f"--num-elements-threshold={SMALL}"]
    with steps.step("convert"), explaining("convert"):
        model = onnx.load(path, load_external_data=False)
        _check_names(model.graph.initializer)
        with open(os.path.join(folder, OUTPUT_TYPES), "w", encoding="utf-8") as file:
            json.dump([_type_of(onnx, each) for each in model.graph.output], file)
        opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), OLDEST_OPSET)
        if opset < OLDEST_OPSET:
            arguments.append(f"--opset-version={OLDEST_OPSET}")
        elif sum(map(_elements, model.graph.initializer)) > LARGE:
            arguments.append("--large-model")
            _read_small(model, data_folder or between)
            onnx.save(model, path)
        parsed = importer.parse_arguments(arguments)
        parsed.data_dir = data_folder or between  # given as an argument it would be a Path, which onnx does not take
        importer.main(parsed)


def _check_types(path: str) -> None:
    """A convolution of bfloat16 may leave the export with float32 weights. ONNX has none such; IREE would take it."""
    onnx: Any = import_module("onnx")
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:  # of several kinds
        found = re.search(r"op_type:\s*(\w+)", str(error))
        text = f"its export to bfloat16 is not valid ONNX: {str(error).strip().splitlines()[0][:300]}"
        raise Unsupported("convert", text, found.group(1) if found else None) from None


def _compile(between: str, folder: str, steps: Steps) -> None:
    """Step "compile", by a program of its own: it may crash."""
    tools: Any = import_module("iree.compiler.tools")
    with steps.step("compile"), explaining("compile"):
        try:
            tools.compile_file(
                os.path.join(between, "model.mlir"),
                input_type="onnx",
                target_backends=["llvm-cpu"],
                output_file=os.path.join(folder, MODULE),
                extended_diagnostics=True,  # they name the operator
                extra_args=list(FLAGS),
            )
        except tools.CompilerToolError as error:
            raise _explained(str(error)) from None


def _explained(said: str) -> Unsupported:
    """From the compiler's diagnostics, which are long, the operator or the first complaint."""
    match = _NOT_LEGAL.search(said)
    if match:
        named = re.search(r"\"onnx\.(\w+)\"", match.group(2))
        operator = named.group(1) if named else match.group(1)
        return Unsupported("compile", f"unsupported operator {operator}: IREE has no lowering for it", operator)
    code = re.search(r"^Error code: (-?\d+)", said, re.MULTILINE)
    if code and int(code.group(1)) < 0:
        return Unsupported("compile", f"iree-compile was ended by {_signal(-int(code.group(1)))}", kind="error")
    found = re.search(r"\berror: ([^\n]{1,300})", said)
    return Unsupported("compile", f"iree-compile: {found.group(1) if found else said[:300]}", kind="error")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _check_names(weights: Sequence[Any]) -> None:
    """The importer writes ":" in a name as "_": two weights could become one."""
    names: List[str] = [each.name.replace(":", "_") for each in weights]
    if len(set(names)) != len(names):
        raise Unsupported("convert", "two of its weights have names that IREE cannot tell apart", kind="error")


def _elements(weight: Any) -> int:
    count = 1
    for size in weight.dims:
        count *= size
    return count


def _read_small(model: Any, data_folder: str) -> None:
    """Where weights are not read into memory, the importer has need of the small ones all the same."""
    onnx: Any = import_module("onnx")
    for each in model.graph.initializer:
        if each.data_location == onnx.TensorProto.EXTERNAL and _elements(each) < SMALL:
            onnx.external_data_helper.load_external_data_for_tensor(each, data_folder)
            each.data_location = onnx.TensorProto.DEFAULT
            del each.external_data[:]


def _precision_of(onnx: Any, weights: Sequence[Any]) -> str:
    """That of most of a file's weights."""
    words = {onnx.TensorProto.FLOAT: FP32, onnx.TensorProto.FLOAT16: FP16, onnx.TensorProto.BFLOAT16: BF16}
    words[onnx.TensorProto.DOUBLE] = "fp64"
    counts: Dict[str, int] = {}
    for each in weights:
        if each.data_type in words:
            word = words[each.data_type]
            counts[word] = counts.get(word, 0) + _elements(each)
    return max(counts, key=lambda word: counts[word]) if counts else FP32


def _set_shapes(inputs: Sequence[Any], shapes: Mapping[str, Sequence[int]]) -> None:
    for each in inputs:
        for dimension, size in zip(each.type.tensor_type.shape.dim, shapes.get(each.name, ())):
            dimension.dim_value = size


def _type_of(onnx: Any, value: Any) -> str:
    kind = value.type.tensor_type.elem_type
    if kind == onnx.TensorProto.BFLOAT16:
        return "bfloat16"
    return str(onnx.helper.tensor_dtype_to_np_dtype(kind))

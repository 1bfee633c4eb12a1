"""Apache TVM: the ONNX export as a relax module, compiled by LLVM into a library for the processor it is built on.

Its front end for torch.export knows fewer operators, and reads `x[:, -1]` from beyond the end of x; the one for ONNX does not.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

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
from benchmodels.runtimes.exporting import export_onnx
from benchmodels.runtimes.host import cpu_kind
from benchmodels.runtimes.problems import explaining
from benchmodels.runtimes.torch_modules import PRECISION_OF
from benchmodels.runtimes.tvm_session import TvmSession

PACKAGE = "apache-tvm"
LIBRARY = "model.so"
COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")  # those that TVM looks for
# What its front end says of an operator that it does not know, or not in this form; group 1 is the operator.
_OPERATORS = (
    re.compile(r"operators are not supported for frontend ONNX: (\w+)"),
    re.compile(r"opset version \S+ of (\w+) not implemented"),
    re.compile(r"Missing outputs during conversion\. .* in (\w+)\."),
)


class Converted(NamedTuple):
    """A module of relax with its weights bound; inputs and outputs in their order, as the ONNX file calls them."""

    module: Any
    precision: str
    inputs: List[ArtifactInput]
    outputs: List[str]


class Tvm:
    """Compiled as it comes: fused, with constants folded, but without tuning, which would take hours."""

    name = "tvm"
    kind = ARTIFACT
    accepts = (".onnx",)
    # In float16 its products are summed up in float16, which is wrong for large ones; few operators know bfloat16.
    precisions = (FP32,)

    def unavailable(self, options: Options) -> Optional[str]:
        if options.device_type != "cpu":
            return f"{self.name} is used on the CPU only, not on '{options.device}'"
        if find_spec("tvm") is None:
            return "tvm is not installed: pip install 'benchwright[tvm]'"
        if not any(map(shutil.which, (os.environ.get("CXX") or os.environ.get("CC") or "g++", *COMPILERS))):
            return "tvm needs a C++ compiler to link what it has compiled: install g++, or set CXX"
        return None

    def version(self) -> str:
        return self.versions().get(PACKAGE, "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions([PACKAGE, "apache-tvm-ffi", "torch", "onnx", "onnxscript"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        """Its code is for one kind of processor; any number of threads may run it."""
        return {"cpu": cpu_kind()}

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        self._require(options)
        between = os.path.join(folder, "onnx")
        os.mkdir(between)
        exported = export_onnx(captured, between, options, steps)
        _compile(_convert(exported.path, {}, steps).module, folder, steps)
        shutil.rmtree(between)
        write_artifact(folder, Artifact(LIBRARY, exported.precision, exported.inputs, exported.outputs))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        self._require(options)
        converted = _convert(path, shapes, steps)
        _compile(converted.module, folder, steps)
        write_artifact(folder, Artifact(LIBRARY, converted.precision, converted.inputs, converted.outputs))

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        with explaining("load"):
            session: Session = TvmSession(tvm(), artifact, options)
        return session

    def _require(self, options: Options) -> None:
        if options.precision not in self.precisions:
            raise Unsupported("export", f"{self.name} does not do {options.precision}")
        if find_spec("onnx") is None:
            raise Unsupported("convert", "tvm reads ONNX by means of onnx: pip install onnx", kind="unavailable")


def tvm() -> Any:
    """TVM without torch, which it would import wherever that is installed: what runs a library has no use for it."""
    if "torch" in sys.modules or "tvm" in sys.modules:
        return import_module("tvm")
    absent: Any = None  # how Python marks a module that must not be found
    sys.modules["torch"] = absent
    try:
        return import_module("tvm")
    finally:
        del sys.modules["torch"]


def _convert(path: str, shapes: Mapping[str, Sequence[int]], steps: Steps) -> Converted:
    """Step "convert"."""
    with steps.step("convert"), explaining("convert"), _naming_operators(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tvm()
        onnx: Any = import_module("onnx")
        frontend: Any = import_module("tvm.relax.frontend.onnx")
        model = onnx.load(path)
        module = frontend.from_onnx(model, {name: list(shape) for name, shape in shapes.items()})
        outputs = [value.name for value in model.graph.output]
        return Converted(module, _precision_of(model), _inputs_of(model), outputs)


def _compile(module: Any, folder: str, steps: Steps) -> None:
    """Step "compile": operators as loops, fused, and these as a shared library."""
    with steps.step("compile"), explaining("compile"):
        relax: Any = import_module("tvm.relax")
        target = _host()
        with target:
            fused = relax.get_pipeline("zero")(module)  # what tvm.compile does by itself fuses nothing on a CPU
        tvm().compile(fused, target=target).export_library(os.path.join(folder, LIBRARY))


def _host() -> Any:
    """This processor, with what it says it can do: a virtual machine may hide some of what its model has."""
    codegen: Any = import_module("tvm.target.codegen")
    features: Any = tvm().get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    described = {
        "kind": "llvm",
        "mtriple": codegen.llvm_get_system_triple(),
        "mcpu": codegen.llvm_get_system_cpu(),
        "mattr": sorted(f"{'+' if bool(has) else '-'}{name}" for name, has in features.items()),
    }
    return tvm().target.Target(described)


def _inputs_of(model: Any) -> List[ArtifactInput]:
    """In their order; of those with a value in the file TVM makes constants."""
    helper: Any = import_module("onnx.helper")
    initial = {tensor.name for tensor in model.graph.initializer}
    return [
        ArtifactInput(value.name, value.name, str(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))
        for value in model.graph.input
        if value.name not in initial
    ]


def _precision_of(model: Any) -> str:
    """That of most of its weights."""
    helper: Any = import_module("onnx.helper")
    sizes: Dict[str, int] = {}
    for tensor in model.graph.initializer:
        kind = str(helper.tensor_dtype_to_np_dtype(tensor.data_type))
        if kind in PRECISION_OF:
            sizes[kind] = sizes.get(kind, 0) + prod(tensor.dims)
    return PRECISION_OF[max(sizes, key=lambda kind: sizes[kind])] if sizes else FP32


@contextmanager
def _naming_operators() -> Iterator[None]:
    """What its front end does not know is told as such."""
    try:
        yield
    except Exception as error:
        for pattern in _OPERATORS:
            found = pattern.search(str(error))
            if found is not None:
                operator = found.group(1)
                text = f"unsupported operator {operator}: {type(error).__name__}: {error}"
                raise Unsupported("convert", text, operator) from error
        raise

"""ONNX files: their inputs, the tables that integers index, and a reference by unoptimised ONNX Runtime."""

from __future__ import annotations

import math
import os
from importlib import import_module
from typing import Any, Dict, Mapping, Optional

from benchmodels.check.reference import Reference, difference
from benchmodels.files.model_file import Dimension, FileInput, Size, named_batch
from benchmodels.files.onnx_work import constants, integer, onnx_work, stored_bytes
from benchmodels.measure.batch import Batch
from benchmodels.measure.work import CallWork
from benchmodels.runtimes.base import Unsupported
from benchmodels.types import Array, Value

REFERENCE = "onnxruntime unoptimised"
# Operators that pass values on unchanged.
PASSES_ON = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


class OnnxFile:
    """Read without weights that are in separate files."""

    def __init__(self, path: str) -> None:
        try:
            self._onnx = import_module("onnx")
        except ImportError:
            raise Unsupported("load", "reading .onnx files needs onnx; pip install onnx", kind="unavailable") from None
        try:
            self._model = self._onnx.load(path, load_external_data=False)
            graph = self._model.graph
            if not graph.node:
                raise ValueError("it has no operators")
        except Exception as error:
            raise Unsupported("load", f"{path} is not an ONNX model: {error}", kind="error") from None
        self._path = path
        for value in graph.output:
            _check_tensor("output", value)
        initial = {tensor.name for tensor in graph.initializer}
        self.title = graph.name or os.path.basename(path)
        self.inputs = [self._input(value) for value in graph.input if value.name not in initial]

    def size(self) -> Size:
        no_weights = (self._onnx.TensorProto.INT64, self._onnx.TensorProto.BOOL)  # shapes, axes and indices
        weights = [tensor for tensor in self._model.graph.initializer if tensor.data_type not in no_weights]
        stored = sum(stored_bytes(tensor.dims, tensor.data_type) for tensor in weights)
        return Size(sum(math.prod(tensor.dims) for tensor in weights), stored)

    def work(self, arrays: Mapping[str, Array]) -> CallWork:
        return onnx_work(self._model, arrays)

    def batch(self, arrays: Mapping[str, Array]) -> Optional[Batch]:
        return named_batch(self.inputs, arrays)

    def reference(self, arrays: Mapping[str, Array]) -> Reference:
        try:
            runtime = import_module("onnxruntime")
        except ImportError:
            raise Unsupported("reference", "outputs of .onnx files are checked by onnxruntime; pip install 'benchwright[onnx]'", kind="unavailable") from None  # fmt: skip
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = runtime.InferenceSession(self._path, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        outputs, again = (dict(zip(names, session.run(names, dict(arrays)))) for _ in range(2))
        return Reference(outputs, f"{REFERENCE} {_widest(outputs)}", [], difference(outputs, again))

    def _input(self, value: Value) -> FileInput:
        _check_tensor("input", value)
        kind = value.type.tensor_type
        if kind.elem_type == self._onnx.TensorProto.STRING:
            raise Unsupported("load", f"input {value.name} holds text; only numeric inputs can be generated")
        shape = [_dimension(place, size) for place, size in enumerate(kind.shape.dim)]
        dtype = str(self._onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        below = _table_size(self._model.graph, value.name) if dtype.lstrip("u").startswith("int") else None
        return FileInput(value.name, shape if kind.HasField("shape") else None, dtype, below)


def _check_tensor(role: str, value: Value) -> None:
    if not value.type.HasField("tensor_type"):
        raise Unsupported("load", f"{role} {value.name} is not a tensor but a {value.type.WhichOneof('value')}")


def _dimension(place: int, size: Any) -> Dimension:
    """Some programs write -1 for a free dimension."""
    if size.HasField("dim_value") and size.dim_value >= 0:
        return int(size.dim_value)
    return size.dim_param or f"dim{place}"


def _table_size(graph: Any, name: str) -> Optional[int]:
    """Rows of the smallest table that this input indexes; None if none is found."""
    sizes = _first_sizes(graph)
    carriers, bounds = {name}, []
    for node in graph.node:  # in topological order, as ONNX requires
        inputs = list(node.input)
        looks_up = node.op_type == "Gather" and len(inputs) == 2 and integer(node, "axis") == 0
        if node.op_type in PASSES_ON and inputs and inputs[0] in carriers:
            carriers.update(node.output)
        elif looks_up and inputs[1] in carriers and inputs[0] in sizes:
            bounds.append(sizes[inputs[0]])
    return min(bounds, default=None)


def _first_sizes(graph: Any) -> Dict[str, int]:
    """The first dimension of each constant, also after a conversion of its type."""
    sizes = {name: int(tensor.dims[0]) for name, tensor in constants(graph) if tensor.dims}
    for node in graph.node:
        if node.op_type in ("Cast", "Identity", "DequantizeLinear") and node.input[0] in sizes:
            sizes[node.output[0]] = sizes[node.input[0]]
    return sizes


def _widest(outputs: Mapping[str, Array]) -> str:
    return max((str(array.dtype) for array in outputs.values() if array.dtype.kind == "f"), default="float32")

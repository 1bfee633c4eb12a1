"""Inputs, outputs and weights of an ONNX model; `onnx` must be importable."""

from __future__ import annotations

from importlib import import_module
from math import prod
from typing import Any, Dict, List

from benchmodels.runtimes.base import FP32, INT8_DYNAMIC
from benchmodels.runtimes.parts.artifact import ArtifactInput
from benchmodels.runtimes.parts.torch_modules import PRECISION_OF
from benchmodels.types import Value


def graph_inputs(model: Any) -> List[Any]:
    """Inputs without a value in the file: the others are constants."""
    initial = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initial]


def described_inputs(model: Any) -> List[ArtifactInput]:
    return [ArtifactInput(value.name, value.name, value_type(value)) for value in graph_inputs(model)]


def output_names(model: Any) -> List[str]:
    return [value.name for value in model.graph.output]


def value_type(value: Value) -> str:
    """The element type of an input or output, as numpy or, for bfloat16, torch calls it."""
    return type_name(value.type.tensor_type.elem_type)


def type_name(kind: int) -> str:
    onnx = import_module("onnx")
    if kind == onnx.TensorProto.BFLOAT16:  # older versions of onnx call it float32
        return "bfloat16"
    return str(onnx.helper.tensor_dtype_to_np_dtype(kind))


def graph_precision(model: Any, otherwise: str) -> str:
    """int8 if it quantises as it runs, else that of most weights, else `otherwise`."""
    if any(
        "Integer" in node.op_type or "Quantize" in node.op_type or node.op_type.startswith("QLinear")
        for node in model.graph.node
    ):
        return INT8_DYNAMIC
    return weights_precision(model) if model.graph.initializer else otherwise


def weights_precision(model: Any) -> str:
    """The precision of most weights."""
    sizes: Dict[str, int] = {}
    for tensor in model.graph.initializer:
        kind = type_name(tensor.data_type)
        if kind in PRECISION_OF:
            sizes[kind] = sizes.get(kind, 0) + prod(tensor.dims)
    return PRECISION_OF[max(sizes, key=lambda kind: sizes[kind])] if sizes else FP32

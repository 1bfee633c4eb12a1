"""ONNX graphs as MNN's converter must be given them, and the ports that they have.

It has no IsNaN, which torch's exporter writes into every attention with a mask, and it takes each Gelu for its approximation
by tanh, which is wrong by 1e-4. Both are written in other operators here; MNN makes one exact Gelu of those again.
"""

from __future__ import annotations

import math
import os
from importlib import import_module
from typing import Any, Dict, List, NamedTuple, Sequence

REWRITTEN = "rewritten.onnx"
# Scalars that the rewritten nodes use.
_CONSTANTS = {"mnn_zero": 0.0, "mnn_half": 0.5, "mnn_one": 1.0, "mnn_root_of_half": math.sqrt(0.5)}


class Port(NamedTuple):
    """`dtype` as numpy calls it; numpy has no bfloat16, but that is its name. `rank`: how many dimensions it has."""

    name: str
    dtype: str
    rank: int


class Graph(NamedTuple):
    """An ONNX file for the converter, and what goes in and out of it."""

    path: str
    inputs: Sequence[Port]
    outputs: Sequence[Port]


def graph_for_mnn(path: str, folder: str) -> Graph:
    """The file at `path` itself or, if it has anything to rewrite, another one in `folder`."""
    onnx: Any = import_module("onnx")
    model = onnx.load(path, load_external_data=False)
    initial = {tensor.name for tensor in model.graph.initializer}
    inputs = [_port(onnx, value) for value in model.graph.input if value.name not in initial]
    outputs = [_port(onnx, value) for value in model.graph.output]
    nodes = [_rewritten(onnx, node) for node in model.graph.node]
    if all(len(each) == 1 for each in nodes):
        return Graph(path, inputs, outputs)
    onnx.load_external_data_for_model(model, os.path.dirname(os.path.abspath(path)))
    del model.graph.node[:]
    model.graph.node.extend(node for each in nodes for node in each)
    scalar = onnx.TensorProto.FLOAT
    model.graph.initializer.extend(
        onnx.helper.make_tensor(name, scalar, [], [value]) for name, value in _CONSTANTS.items()
    )
    to = os.path.join(folder, REWRITTEN)
    onnx.save(model, to, save_as_external_data=True, location=f"{REWRITTEN}.data")
    return Graph(to, inputs, outputs)


def _rewritten(onnx: Any, node: Any) -> List[Any]:
    if node.domain not in ("", "ai.onnx"):
        return [node]
    if node.op_type == "IsNaN":
        return _is_nan(onnx.helper.make_node, node.input[0], node.output[0])
    attributes: Dict[str, Any] = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    if node.op_type == "Gelu" and attributes.get("approximate", b"none") == b"none":
        return _gelu(onnx.helper.make_node, node.input[0], node.output[0])
    return [node]


def _is_nan(made: Any, x: str, y: str) -> List[Any]:
    """Neither below zero nor not: MNN is compiled so that `x == x` is always true."""
    return [
        made("Less", [x, "mnn_zero"], [f"{y}_below"]),
        made("GreaterOrEqual", [x, "mnn_zero"], [f"{y}_above"]),
        made("Or", [f"{y}_below", f"{y}_above"], [f"{y}_number"]),
        made("Not", [f"{y}_number"], [y]),
    ]


def _gelu(made: Any, x: str, y: str) -> List[Any]:
    """In the form that MNN knows as the exact one."""
    return [
        made("Mul", [x, "mnn_root_of_half"], [f"{y}_scaled"]),
        made("Erf", [f"{y}_scaled"], [f"{y}_erf"]),
        made("Add", [f"{y}_erf", "mnn_one"], [f"{y}_raised"]),
        made("Mul", [x, f"{y}_raised"], [f"{y}_twice"]),
        made("Mul", [f"{y}_twice", "mnn_half"], [y]),
    ]


def _port(onnx: Any, value: Any) -> Port:
    kind = value.type.tensor_type
    return Port(value.name, str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)), len(kind.shape.dim))

"""Small ONNX files, made without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def looked_up(folder: Path, rows: int = 11, name: str = "tiny.onnx", width: int = 8) -> Path:
    """ids (batch × 6, int32) → rows of a table → a product of matrices → y; with a mask that is added."""
    onnx: Any = __import__("onnx")
    make, types = onnx.helper, onnx.TensorProto
    source = np.random.default_rng(0)
    table = source.standard_normal((rows, width)).astype("float32")
    weights = source.standard_normal((width, 4)).astype("float32")
    graph = make.make_graph(
        [
            make.make_node("Cast", ["ids"], ["wide"], to=types.INT64),
            make.make_node("Gather", ["table", "wide"], ["found"]),
            make.make_node("MatMul", ["found", "weights"], ["product"]),
            make.make_node("Add", ["product", "mask"], ["y"]),
        ],
        "Tiny",
        [
            make.make_tensor_value_info("ids", types.INT32, ["batch", 6]),
            make.make_tensor_value_info("mask", types.FLOAT, [6, 4]),
        ],
        [make.make_tensor_value_info("y", types.FLOAT, ["batch", 6, 4])],
        [onnx.numpy_helper.from_array(table, "table"), onnx.numpy_helper.from_array(weights, "weights")],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(folder / name))
    return folder / name


def failing(folder: Path, operator: str = "NoSuchOperator") -> Path:
    """One whose operator no runtime knows."""
    onnx: Any = __import__("onnx")
    make, types = onnx.helper, onnx.TensorProto
    values = [make.make_tensor_value_info(name, types.FLOAT, [2]) for name in ("x", "y")]
    graph = make.make_graph([make.make_node(operator, ["x"], ["y"], domain="nowhere")], "Bad", values[:1], values[1:])
    model = make.make_model(
        graph, opset_imports=[make.make_opsetid("", 18), make.make_opsetid("nowhere", 1)], ir_version=9
    )
    onnx.save(model, str(folder / "bad.onnx"))
    return folder / "bad.onnx"


def softmax_of_product(path: Path) -> tuple[Any, Any]:
    """data (batch × 8) → a product of matrices → prob (batch × 4). Returns what numpy computes, and for which data."""
    onnx: Any = __import__("onnx")
    make, types = onnx.helper, onnx.TensorProto
    source = np.random.default_rng(0)
    weights = source.standard_normal((8, 4)).astype("float32")
    graph = make.make_graph(
        [make.make_node("MatMul", ["data", "weights"], ["h"]), make.make_node("Softmax", ["h"], ["prob"], axis=1)],
        "Tiny",
        [make.make_tensor_value_info("data", types.FLOAT, ["batch", 8])],
        [make.make_tensor_value_info("prob", types.FLOAT, ["batch", 4])],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=9), str(path))
    data = source.standard_normal((2, 8)).astype("float32")
    powers = np.exp(data.astype("float64") @ weights.astype("float64"))
    return powers / powers.sum(axis=1, keepdims=True), data

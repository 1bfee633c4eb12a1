"""Arithmetic and bytes of ONNX graphs, counted by hand and by us."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx")

from benchmodels.files.onnx_work import onnx_work  # noqa: E402

FLOAT, LONG = 4, 8
X = np.ones((4, 64), dtype=np.float32)
IDS = np.zeros((3, 7), dtype=np.int64)


def graph_of(inputs: np.ndarray, *nodes: Any, **weights: tuple[int, ...]) -> Any:
    """x → … → y."""
    make = onnx.helper
    kind = onnx.helper.np_dtype_to_tensor_dtype(inputs.dtype)
    graph = make.make_graph(
        list(nodes),
        "g",
        [make.make_tensor_value_info("x", kind, list(inputs.shape))],
        [make.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in weights.items()],
    )
    opsets = [make.make_opsetid("", 18), make.make_opsetid("com.microsoft", 1)]
    return make.make_model(graph, opset_imports=opsets, ir_version=9)


def node(operator: str, inputs: str, output: str = "y", **attributes: Any) -> Any:
    return onnx.helper.make_node(operator, inputs.split(), [output], **attributes)


@pytest.mark.parametrize("operator", ["FusedGemm", "NhwcFusedConv", "MatMulBnb4", "QGemm", "PackedAttention", "QMoE"])
def test_products_that_an_optimiser_wrote_are_not_left_out_of_a_number(operator: str) -> None:
    graph = graph_of(X, node("MatMul", "x w", "z"), node(operator, "z v", domain="com.microsoft"), w=(64, 8), v=(8, 8))
    found = onnx_work(graph, {"x": X})
    assert found.flops is None
    assert found.note == f"no rule for {operator}"


def test_of_a_table_only_the_rows_that_are_looked_up_are_moved() -> None:
    found = onnx_work(graph_of(IDS, node("Gather", "table x"), table=(1000, 32)), {"x": IDS})
    assert found.bytes_ == 21 * (32 * FLOAT + LONG + 32 * FLOAT)


def test_a_table_that_is_used_otherwise_too_is_moved_wholly() -> None:
    nodes = node("Gather", "table x", "found"), node("MatMul", "found table")
    found = onnx_work(graph_of(IDS, *nodes, table=(32, 32)), {"x": IDS})
    assert found[:3] == (2 * 21 * 32 * 32, 32 * 32 * FLOAT + 21 * (LONG + 32 * FLOAT), None)


def test_weights_that_are_written_as_nodes_are_moved_too() -> None:
    constant = node("Constant", "", "w", value=onnx.numpy_helper.from_array(np.ones((64, 32), np.float32)))
    found = onnx_work(graph_of(X, constant, node("MatMul", "x w")), {"x": X})
    assert found[:3] == (2 * 4 * 64 * 32, (64 * 32 + 4 * 64 + 4 * 32) * FLOAT, None)

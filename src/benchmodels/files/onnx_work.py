"""How much work an ONNX model is: as in `work`, but from the shapes in its graph."""

from __future__ import annotations

import math
import re
from importlib import import_module
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from benchmodels.measure.work import CallWork
from benchmodels.runtimes.parts.tf32 import CONVOLUTIONS, PRODUCTS
from benchmodels.types import Array

Shape = Tuple[int, ...]
COUNTED = ("MatMul", "Gemm", "Conv", "ConvTranspose")
# What these do cannot be told from shapes; rather no number than one that leaves them out. Those that optimisers make,
# such as NhwcFusedConv, are known by a part of their name.
NOT_COUNTED = re.compile("MatMul|Gemm|Conv|Attention|LSTM|GRU|RNN|Einsum|MoE|Search$|^(If|Loop|Scan|Sampling)$")


def onnx_work(model: Any, arrays: Mapping[str, Array]) -> CallWork:
    """Of one call with those inputs. Never raises."""
    try:
        shapes = _shapes(model, arrays)
        graph = model.graph
        strange = sorted({node.op_type for node in graph.node if _is_strange(node.op_type)} | _own_functions(model))
        if strange:
            return CallWork(
                None, _moved_bytes(graph, arrays, shapes), f"arithmetic of {', '.join(strange)} is not counted"
            )
        counts = [_flops(node, shapes) for node in graph.node]
        if any(count is None for count in counts):
            unknown = sorted({node.op_type for node, count in zip(graph.node, counts) if count is None})
            return CallWork(None, _moved_bytes(graph, arrays, shapes), f"shapes of {', '.join(unknown)} are not known")
        kinds: Dict[str, float] = {}
        for node, count in zip(graph.node, counts):
            if count:
                kind = CONVOLUTIONS if "Conv" in node.op_type else PRODUCTS
                kinds[kind] = kinds.get(kind, 0.0) + count
        return CallWork(float(sum(kinds.values())), _moved_bytes(graph, arrays, shapes), None, kinds)
    except Exception as error:  # any model file of the user; the note says why
        return CallWork(None, None, f"not counted: {type(error).__name__}: {error}"[:300])


def _is_strange(operator: str) -> bool:
    return operator not in COUNTED and NOT_COUNTED.search(operator) is not None


def _own_functions(model: Any) -> Set[str]:
    return {function.name for function in model.functions} & {node.op_type for node in model.graph.node}


def _shapes(model: Any, arrays: Mapping[str, Array]) -> Dict[str, Shape]:
    """Of every value in the graph whose shape is known once those of the inputs are."""
    onnx = import_module("onnx")
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        if value.name in arrays:
            dims = value.type.tensor_type.shape.dim
            for dim, size in zip(dims, arrays[value.name].shape):
                dim.dim_value = size
    del fixed.graph.value_info[:]  # they may hold names where numbers are known now
    for value in fixed.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(fixed, data_prop=True).graph
    found: Dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in inferred.initializer}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            found[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    for node in inferred.node:
        if node.op_type == "Constant":
            tensors = [attribute.t for attribute in node.attribute if attribute.name == "value"]
            found.setdefault(node.output[0], tuple(tensors[0].dims) if tensors else ())
    return found


def _flops(node: Any, shapes: Mapping[str, Shape]) -> Optional[int]:
    """None: it should be counted, but a shape is not known."""
    if node.op_type not in COUNTED:
        return 0
    known = [shapes.get(name) for name in (node.input[0], node.input[1], node.output[0])]
    if any(shape is None for shape in known):
        return None
    first, second, result = (shape for shape in known if shape is not None)
    if node.op_type == "Conv":  # one output: a filter's weights, each used once
        return 2 * math.prod(result) * math.prod(second[1:])
    if node.op_type == "ConvTranspose":
        return 2 * math.prod(first) * math.prod(second[1:])
    inner = first[0] if node.op_type == "Gemm" and _attribute(node, "transA") else first[-1]
    return 2 * math.prod(result) * inner


def _attribute(node: Any, name: str) -> int:
    return next((int(attribute.i) for attribute in node.attribute if attribute.name == name), 0)


def _moved_bytes(graph: Any, arrays: Mapping[str, Array], shapes: Mapping[str, Shape]) -> Optional[float]:
    onnx = import_module("onnx")

    def size(shape: Sequence[int], data_type: int) -> int:
        return math.prod(shape) * int(onnx.helper.tensor_dtype_to_np_dtype(data_type).itemsize)

    taken = _taken(graph, shapes)
    parts: List[int] = []
    for name, tensor in _weights(graph):
        whole = size(tensor.dims, tensor.data_type)
        parts.append(min(whole, taken[name] * size((), tensor.data_type)) if name in taken else whole)
    parts += [int(array.nbytes) for array in arrays.values()]
    for value in graph.output:
        if value.name not in shapes:
            return None
        parts.append(size(shapes[value.name], value.type.tensor_type.elem_type))
    return float(sum(parts))


def _weights(graph: Any) -> List[Tuple[str, Any]]:
    """By name. Some programs write them as nodes."""
    nodes = [node for node in graph.node if node.op_type == "Constant"]
    constants = [(node.output[0], each.t) for node in nodes for each in node.attribute if each.name == "value"]
    return [*((tensor.name, tensor) for tensor in graph.initializer), *constants]


def _taken(graph: Any, shapes: Mapping[str, Shape]) -> Dict[str, int]:
    """How many numbers are looked up in each table, of those that are used for nothing else."""
    found: Dict[str, int] = {}
    others: Set[str] = {value.name for value in graph.output}
    for node in graph.node:
        if any(attribute.HasField("g") for attribute in node.attribute):
            return {}  # what is used inside of it is not looked at
        looks_up = node.op_type == "Gather" and node.output[0] in shapes
        if looks_up:
            found[node.input[0]] = found.get(node.input[0], 0) + math.prod(shapes[node.output[0]])
        others.update(node.input[1:] if looks_up else node.input)
    return {name: count for name, count in found.items() if name not in others}

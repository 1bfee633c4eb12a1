"""Counts the work of an ONNX model as `work` does, but from the shapes in its graph."""

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
# The work of these cannot be derived from shapes, and no number is better than one that leaves them out. Matches parts of
# names, since optimisers make operators such as NhwcFusedConv.
NOT_COUNTED = re.compile("MatMul|Gemm|Conv|Attention|LSTM|GRU|RNN|Einsum|MoE|Search$|^(If|Loop|Scan|Sampling)$")


def onnx_work(model: Any, arrays: Mapping[str, Array]) -> CallWork:
    """The work of one call with these inputs. Never raises."""
    try:
        shapes = _shapes(model, arrays)
        moved = _moved_bytes(model.graph, arrays, shapes)
        used = {node.op_type for node in model.graph.node}
        strange = {name for name in used if name not in COUNTED and NOT_COUNTED.search(name)}
        strange |= {function.name for function in model.functions} & used
        if strange:
            return CallWork(None, moved, f"no rule for {', '.join(sorted(strange))}")
        counts = [(node.op_type, _flops(node, shapes)) for node in model.graph.node]
        unknown = {name for name, count in counts if count is None}
        if unknown:
            return CallWork(None, moved, f"shapes of {', '.join(sorted(unknown))} are not known")
        kinds: Dict[str, float] = {}
        for name, count in counts:
            if count:
                kind = CONVOLUTIONS if "Conv" in name else PRODUCTS
                kinds[kind] = kinds.get(kind, 0.0) + count
        return CallWork(float(sum(kinds.values())), moved, None, kinds)
    except Exception as error:  # any model file of the user; the note says why
        return CallWork(None, None, f"{type(error).__name__}: {error}"[:300])


def _shapes(model: Any, arrays: Mapping[str, Array]) -> Dict[str, Shape]:
    """Every shape in the graph that follows from those of the inputs."""
    onnx = import_module("onnx")
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        if value.name in arrays:
            for dim, size in zip(value.type.tensor_type.shape.dim, arrays[value.name].shape):
                dim.dim_value = size
    del fixed.graph.value_info[:]  # these may name dimensions whose sizes are known now
    for value in fixed.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(fixed, data_prop=True).graph
    found: Dict[str, Shape] = {node.output[0]: () for node in inferred.node if node.op_type == "Constant"}
    found.update((name, tuple(tensor.dims)) for name, tensor in constants(inferred))
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            found[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    return found


def _flops(node: Any, shapes: Mapping[str, Shape]) -> Optional[int]:
    """None: it should be counted, but a shape is unknown."""
    if node.op_type not in COUNTED:
        return 0
    known = [shapes.get(name) for name in (node.input[0], node.input[1], node.output[0])]
    if any(shape is None for shape in known):
        return None
    first, second, result = (shape for shape in known if shape is not None)
    if node.op_type == "Conv":  # each output uses each of a filter's weights once
        return 2 * math.prod(result) * math.prod(second[1:])
    if node.op_type == "ConvTranspose":
        return 2 * math.prod(first) * math.prod(second[1:])
    inner = first[0] if node.op_type == "Gemm" and integer(node, "transA") else first[-1]
    return 2 * math.prod(result) * inner


def integer(node: Any, name: str) -> int:
    """An attribute of an operator; 0 if it is not set."""
    return next((int(attribute.i) for attribute in node.attribute if attribute.name == name), 0)


def stored_bytes(shape: Sequence[int], data_type: int) -> int:
    return math.prod(shape) * int(import_module("onnx").helper.tensor_dtype_to_np_dtype(data_type).itemsize)


def _moved_bytes(graph: Any, arrays: Mapping[str, Array], shapes: Mapping[str, Shape]) -> Optional[float]:
    looked_up = _looked_up(graph, shapes)
    parts = [int(array.nbytes) for array in arrays.values()]
    for name, tensor in constants(graph):
        whole = stored_bytes(tensor.dims, tensor.data_type)
        parts.append(min(whole, stored_bytes((looked_up[name],), tensor.data_type)) if name in looked_up else whole)
    for value in graph.output:
        if value.name not in shapes:
            return None
        parts.append(stored_bytes(shapes[value.name], value.type.tensor_type.elem_type))
    return float(sum(parts))


def constants(graph: Any) -> List[Tuple[str, Any]]:
    """Constant tensors by name: initializers, and `Constant` nodes, which some exporters write."""
    nodes = [node for node in graph.node if node.op_type == "Constant"]
    tensors = [(node.output[0], each.t) for node in nodes for each in node.attribute if each.name == "value"]
    return [*((tensor.name, tensor) for tensor in graph.initializer), *tensors]


def _looked_up(graph: Any, shapes: Mapping[str, Shape]) -> Dict[str, int]:
    """How many values are read from each table that is used for nothing but look-ups."""
    found: Dict[str, int] = {}
    others: Set[str] = {value.name for value in graph.output}
    for node in graph.node:
        if any(attribute.HasField("g") for attribute in node.attribute):
            return {}  # sub-graphs are not examined
        gathers = node.op_type == "Gather" and node.output[0] in shapes
        if gathers:
            found[node.input[0]] = found.get(node.input[0], 0) + math.prod(shapes[node.output[0]])
        others.update(node.input[1:] if gathers else node.input)
    return {name: count for name, count in found.items() if name not in others}

"""Models as functions from tensors to tensors, as exporters want them, and their export to ONNX."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from benchmodels.build.sequence_file import BuildSequence, sequence_of
from benchmodels.runtimes.base import FP32, INT8_DYNAMIC, Captured, RuntimeOptions, StepTimer, Unsupported
from benchmodels.runtimes.parts import torch_modules
from benchmodels.runtimes.parts.artifact import ArtifactInput, torch_dtype
from benchmodels.runtimes.parts.onnx_graph import graph_inputs, graph_precision, value_type
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.tensors import Named, flatten, flatten_call, rebuilt_call
from benchmodels.types import Module, Tensor

NO_CHECKS = "TRANSFORMERS_DISABLE_TORCH_CHECK"


class FlatModel(NamedTuple):
    """`module` takes `tensors` and returns a tuple. `outputs` has the names of that once it was called."""

    module: Module
    tensors: Tuple[Tensor, ...]
    names: List[str]
    outputs: List[str]
    precision: str


class OnnxExport(NamedTuple):
    """The model at `path`, with its weights in a file beside it."""

    path: str
    inputs: List[ArtifactInput]
    outputs: List[str]
    precision: str


def flat_model(captured: Captured, options: RuntimeOptions) -> FlatModel:
    """The captured model on the device and in the precision. What is no tensor among its inputs is a constant."""
    torch = import_module("torch")
    fit = torch_modules.fitted(captured.module, options)
    inputs = flatten_call(captured.args, captured.kwargs, captured.names)
    _check_inputs(inputs)
    outputs: List[str] = []

    class Flat(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = fit.module

        def forward(self, *tensors: Tensor) -> Any:
            left = iter(tensors)
            args, kwargs = rebuilt_call(captured.args, captured.kwargs, lambda _: next(left))
            found = flatten(self.model(*args, **kwargs))
            _check_outputs(found)
            outputs[:] = [name for name, _ in found]
            return tuple(tensor for _, tensor in found)

    cast_to = torch_modules.CAST_TO.get(options.precision)
    dtype = None if cast_to is None else getattr(torch, cast_to)
    device = torch.device(options.device)
    tensors = tuple(
        t.detach().to(device=device, dtype=dtype if t.is_floating_point() else None, copy=True) for _, t in inputs
    )
    return FlatModel(Flat().eval(), tensors, [name for name, _ in inputs], outputs, fit.precision)


def export_onnx(captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> OnnxExport:
    """StepTimer "export" and "optimise", on the CPU; weights go into a separate file, so they may be of any size.

    Quantisation comes later: the model is exported as it is.
    """
    precision = FP32 if options.precision == INT8_DYNAMIC else options.precision
    options = options._replace(device="cpu", precision=precision)
    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise Unsupported(
            "export", f"the export needs {' and '.join(missing)}: pip install {' '.join(missing)}", kind="unavailable"
        )
    onnx = import_module("torch.onnx")
    with steps.step("export"), explaining("export"), exporting():
        flat = flat_model(captured, options)
        opset = {} if options.onnx_opset is None else {"opset_version": options.onnx_opset}
        program = onnx.export(flat.module, flat.tensors, dynamo=True, optimize=False, verbose=False, **opset)
        if not flat.outputs:  # where torch falls back to its strict export, which does not run the model
            flat.module(*flat.tensors)
        _check_opset(program, options.onnx_opset)
        _check_graph(program, flat)
        _rename_inputs(program, flat.names)
    path = os.path.join(folder, "model.onnx")
    with steps.step("optimise"), explaining("optimise"), exporting():
        program.optimize()
        _check_graph(program, flat)
        ports = [value.name for value in program.model.graph.inputs]  # optimising may have given them others
        program.save(path, external_data=True)
    inputs = [
        ArtifactInput(name, port, torch_dtype(tensor)) for name, port, tensor in zip(flat.names, ports, flat.tensors)
    ]
    exported = OnnxExport(path, inputs, flat.outputs, flat.precision)
    sequence = sequence_of(options, "export")
    return _after_export(exported, flat, sequence, steps) if sequence and sequence.of_onnx else exported


def _after_export(exported: OnnxExport, flat: FlatModel, sequence: BuildSequence, steps: StepTimer) -> OnnxExport:
    """The export after the functions of a build sequence; inputs and outputs must stay."""
    arrays = {
        port.port: tensor.float().numpy() if port.dtype == "bfloat16" else tensor.numpy()
        for port, tensor in zip(exported.inputs, flat.tensors)
    }
    path = sequence.changed_onnx(exported.path, arrays, steps)
    with explaining("convert"):
        model = import_module("onnx").load(path, load_external_data=False)
        ports = [(value.name, value_type(value)) for value in graph_inputs(model)]
    dtypes = dict(ports)
    if {name for name, _ in ports} != {each.port for each in exported.inputs} or len(model.graph.output) != len(
        flat.outputs
    ):
        before = ", ".join(each.port for each in exported.inputs)
        after = ", ".join(dtypes)
        text = f"inputs {before} and {len(flat.outputs)} outputs before, {after} and {len(model.graph.output)} after"
        raise Unsupported(
            "convert",
            f"{os.path.basename(sequence.path)} changes what the model takes and returns: {text}",
            kind="error",
        )
    inputs = [each._replace(dtype=dtypes[each.port]) for each in exported.inputs]
    return OnnxExport(path, inputs, flat.outputs, graph_precision(model, exported.precision))


def numbered_inputs(flat: FlatModel) -> List[ArtifactInput]:
    """For programs that know inputs only by position."""
    return [
        ArtifactInput(name, str(index), torch_dtype(tensor))
        for index, (name, tensor) in enumerate(zip(flat.names, flat.tensors))
    ]


@contextmanager
def exporting() -> Iterator[None]:
    """No gradients, tensors that tracing can handle, and no warnings by torch about itself.

    Checks of inputs that transformers makes in its models are left out: exporters do not know them.
    """
    torch = import_module("torch")
    before = os.environ.get(NO_CHECKS)
    os.environ[NO_CHECKS] = "1"
    try:
        # In this order: leaving inference mode switches gradients on.
        with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.environ.pop(NO_CHECKS)
        if before is not None:
            os.environ[NO_CHECKS] = before


def _check_inputs(inputs: Sequence[Named]) -> None:
    if not inputs:
        text = "no tensor among its inputs: the whole call would be exported as a constant"
        raise Unsupported("export", text)
    lazy = [name for name, tensor in inputs if tensor.is_complex() or tensor.is_sparse or tensor.is_quantized]
    if lazy:
        raise Unsupported("export", f"input {lazy[0]} is complex, sparse or quantised")


def _check_outputs(found: Sequence[Named]) -> None:
    if not found:
        raise Unsupported("export", "the model returns no tensor")
    if any(tensor.is_complex() for _, tensor in found):
        raise Unsupported("export", "an output is complex")


def _check_opset(program: Any, wanted: Optional[int]) -> None:
    """The exporter warns, and leaves the model as it is, if it cannot convert it."""
    found = program.model.opset_imports.get("")
    if wanted is not None and found != wanted:
        raise Unsupported("export", f"the exporter cannot convert it to opset {wanted}; it is of opset {found}")


def _check_graph(program: Any, flat: FlatModel) -> None:
    graph = program.model.graph
    if len(graph.inputs) != len(flat.tensors) or len(graph.outputs) != len(flat.outputs):
        text = (
            f"the export has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs; the model takes "
            f"{len(flat.tensors)} tensors and returns {len(flat.outputs)}"
        )
        raise Unsupported("export", text, kind="error")


def _rename_inputs(program: Any, names: Sequence[str]) -> None:
    """Names that people know, where no other value of the graph has them: torch's own renaming does not look."""
    graph = program.model.graph
    taken: Set[str] = set(graph.initializers)
    for node in graph:
        taken.update(value.name for value in node.outputs)
    taken.update(value.name for value in graph.inputs)
    for value, name in zip(graph.inputs, names):
        wanted = re.sub(r"[^A-Za-z0-9_.]", "_", name)
        if wanted not in taken:
            taken.add(wanted)
            value.name = wanted

"""ExecuTorch: torch's export as a `.pte` program, whose operators run on XNNPACK as far as that takes them."""

from __future__ import annotations

import copy
import os
import re
from contextlib import redirect_stderr
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from benchmodels.runtimes import torch_modules
from benchmodels.runtimes.artifact import Artifact, ArtifactInput, read_artifact, write_artifact
from benchmodels.runtimes.base import (
    ARTIFACT,
    FP16,
    FP32,
    INT8_DYNAMIC,
    ArtifactFolder,
    Captured,
    Options,
    Session,
    Steps,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.executorch_session import (
    Delegation,
    ExecutorchSession,
    bindings,
    read_delegation,
    write_delegation,
)
from benchmodels.runtimes.exporting import exporting, flat_model
from benchmodels.runtimes.problems import explaining

PROGRAM = "model.pte"
# What ExecuTorch writes to sys.stderr and leaves out of its exceptions.
_OPERATOR = re.compile(r"failed at instruction [^\n]* in operator (\w+::\w+)")
_REASON = re.compile(r"Check failed \(.*\): (\S[^\n]*)")


class Executorch:
    """No bf16: XNNPACK does not take it; the kernels that do add up in bfloat16, and take a hundred times as long as eager.

    In fp16 the LayerNorm of 1.5.1 is wrong, which the check of outputs finds.
    """

    name = "executorch"
    kind = ARTIFACT
    accepts: Tuple[str, ...] = ()
    precisions = (FP32, FP16, INT8_DYNAMIC)

    def unavailable(self, options: Options) -> Optional[str]:
        if options.device_type != "cpu":
            return f"{self.name} is measured on the CPU only, through XNNPACK, not on {options.device}"
        if find_spec("executorch") is None:
            return "executorch is not installed: pip install 'benchwright[executorch]'"
        return torch_modules.unavailable(options)

    def version(self) -> str:
        return self.versions().get("executorch", "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions(["executorch", "torch", "torchao"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        return {}  # XNNPACK chooses its kernels, and packs the weights for them, when a program is loaded

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        if options.precision not in self.precisions:
            raise Unsupported("export", f"{self.name} does not do {options.precision}")
        torch: Any = import_module("torch")
        with explaining("convert"), exporting():  # seconds of imports, which are no part of a step
            exir: Any = import_module("executorch.exir")
            xnnpack: Any = import_module("executorch.backends.xnnpack.partition.xnnpack_partitioner")
        as_int8 = options.precision == INT8_DYNAMIC
        with steps.step("export"), explaining("export"), exporting():
            flat = flat_model(captured, options._replace(precision=FP32) if as_int8 else options)
            # A program takes one layout only, and arrays come from a file in theirs.
            tensors = tuple(tensor.contiguous() for tensor in flat.tensors)
            program = torch.export.export(_contiguous(flat.module), tensors, strict=False)
        with steps.step("convert"), explaining("convert"), exporting():
            if as_int8:
                program = _quantized(torch, program, tensors)
            # Unchecked: a kernel may well be there for what is not among torch's core operators.
            settings = exir.EdgeCompileConfig(_check_ir_validity=False)
            edge = exir.to_edge_transform_and_lower(
                program, partitioner=[xnnpack.XnnpackPartitioner()], compile_config=settings
            )
            delegation = _delegation(edge.exported_program().graph_module)
            lowered = edge.to_executorch()
            _require_kernels(lowered)
            with open(os.path.join(folder, PROGRAM), "wb") as file:
                lowered.write_to_file(file)
        inputs = [
            ArtifactInput(name, str(index), str(tensor.dtype).partition(".")[2])
            for index, (name, tensor) in enumerate(zip(flat.names, tensors))
        ]
        precision = INT8_DYNAMIC if as_int8 else flat.precision
        write_artifact(folder, Artifact(PROGRAM, precision, inputs, flat.outputs))
        write_delegation(folder, delegation)
        del program, edge, lowered
        self._try_out(folder, options, list(tensors))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        raise Unsupported("load", f"{self.name} builds from a module, not from a file")

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        with explaining("load"):
            session: Session = ExecutorchSession(artifact, read_delegation(what.folder), options)
        return session

    def _try_out(self, folder: str, options: Options, tensors: List[Any]) -> None:
        """One call: a kernel refuses what it cannot do no earlier, and only the log says which kernel and why."""
        log = StringIO()
        try:
            with redirect_stderr(log):
                session = self.load(ArtifactFolder(folder), options)
                session.run(tensors)
                session.close()
        except (RuntimeError, Unsupported) as error:
            raise refusal(log.getvalue(), error) from error


def refusal(log: str, error: Exception) -> Unsupported:
    """What the log says about the first call that failed with `error`."""
    operator, reason = _OPERATOR.search(log), _REASON.search(log)
    if operator is None:
        return error if isinstance(error, Unsupported) else Unsupported("first_run", str(error), kind="error")
    why = reason[1] if reason is not None else str(error)
    return Unsupported("first_run", f"unsupported operator {operator[1]}: {why}", operator[1])


def _contiguous(module: Any) -> Any:
    """XNNPACK takes weights in torch's usual layout only; a copy where one of them has another."""
    if all(tensor.is_contiguous() for tensor in [*module.parameters(), *module.buffers()]):
        return module
    made = copy.deepcopy(module)
    for tensor in [*made.parameters(), *made.buffers()]:
        tensor.data = tensor.data.contiguous()
    return made


def _quantized(torch: Any, program: Any, tensors: Tuple[Any, ...]) -> Any:
    """Weights of Linear layers in int8, a scale for each row, and their inputs quantised as they come."""
    quantizers: Any = import_module("executorch.backends.xnnpack.quantizer.xnnpack_quantizer")
    pt2e: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")

    class Quantizer(quantizers.XNNPACKQuantizer):  # type: ignore[misc]
        def transform_for_annotation(self, model: Any) -> Any:
            return model  # theirs makes floats of all numbers, those that indices are computed with, too

    settings = quantizers.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    prepared = pt2e.prepare_pt2e(program.module(), Quantizer().set_global(settings))
    prepared(*tensors)  # looks at the weights
    made = pt2e.convert_pt2e(prepared)
    if not any("choose_qparams" in str(node.target) for node in made.graph.nodes):
        raise Unsupported("convert", "it has no Linear layer, so there is nothing to quantise to int8")
    return torch.export.export(made, tensors, strict=False)


def _delegation(graph_module: Any) -> Delegation:
    """How much of a lowered graph is XNNPACK's, in nodes, and which operators are not."""
    delegated, delegates = 0, 0
    others: List[str] = []
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or getattr(node.target, "__name__", "") == "getitem":
            continue
        if "call_delegate" in str(node.target):
            part = getattr(graph_module, node.args[0].target).original_module
            delegated += sum(inner.op == "call_function" for inner in part.graph.nodes)
            delegates += 1
        else:
            schema = getattr(node.target, "_schema", None)
            others.append(str(node.target) if schema is None else str(schema.name))
    return Delegation(delegates, delegated, len(others), sorted(set(others)))


def _require_kernels(lowered: Any) -> None:
    """Unsupported if the package has no kernel for something that the program calls."""
    there = set(bindings()._get_operator_names())
    for plan in lowered.executorch_program.execution_plan:
        for each in plan.operators:
            if (f"{each.name}.{each.overload}" if each.overload else each.name) not in there:
                text = f"unsupported operator {each.name}: neither XNNPACK takes it nor is there a portable kernel"
                raise Unsupported("convert", text, each.name)

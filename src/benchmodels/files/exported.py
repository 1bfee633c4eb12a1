"""`.pt2` files of torch.export: their inputs, and a reference in eager mode."""

from __future__ import annotations

import os
from importlib import import_module
from types import MethodType
from typing import Any, Dict, List, Mapping, Optional, Tuple

from benchmodels.check.reference import Reference, reference_of
from benchmodels.files.model_file import FileInput, Size, named_batch
from benchmodels.measure.batch import Batch, Dimension
from benchmodels.measure.work import CallWork, count_work
from benchmodels.runtimes.base import Captured, Unsupported
from benchmodels.tensors import flatten_call
from benchmodels.types import Array, Details, Module, Value


class ExportedFile:
    """Inputs have the names of `forward`'s parameters. Inputs saved with the program are used unless shapes are given."""

    def __init__(self, path: str) -> None:
        try:
            self._torch = import_module("torch")
            export = import_module("torch.export")
        except ImportError:
            raise Unsupported(
                "load", ".pt2 files need torch; pip install 'benchwright[torch]'", kind="unavailable"
            ) from None
        try:
            self._program = export.load(path)
        except Exception as error:
            text = str(error).strip().splitlines() or [""]
            raise Unsupported("load", f"{path} is not a torch.export program: {text[0][:300]}", kind="error") from None
        self.module: Module = _callable_in_eval(self._program.module())
        self.title = os.path.splitext(os.path.basename(path))[0]
        self.inputs: List[FileInput] = self._inputs()

    def size(self) -> Size:
        tensors = list(self._program.parameters())  # buffers, such as running means, are not weights
        return Size(sum(t.numel() for t in tensors), sum(t.numel() * t.element_size() for t in tensors))

    def work(self, arrays: Mapping[str, Array]) -> CallWork:
        args, kwargs = self._arguments(arrays)
        return count_work(self.module, args, kwargs)

    def batch(self, arrays: Mapping[str, Array]) -> Optional[Batch]:
        return named_batch(self.inputs, arrays)

    def varying(self) -> List[List[Dimension]]:
        """Free dimensions, grouped by symbol; each names its argument (`arg0` if positional) and its position."""
        spec = self._program.call_spec.in_spec
        args, kwargs = self._torch.utils._pytree.tree_unflatten(list(range(len(self._leaves))), spec)
        if not all(isinstance(each, int) for each in (*args, *kwargs.values())):  # nested in a container
            return []
        names = {index: f"arg{place}" for place, index in enumerate(args)}
        names.update((index, name) for name, index in kwargs.items())
        found: Dict[str, List[Dimension]] = {}
        for index, leaf in enumerate(self._leaves):
            for place, size in enumerate(leaf.shape or () if isinstance(leaf, FileInput) else ()):
                if isinstance(size, str):
                    found.setdefault(size, []).append((names[index], place))
        return list(found.values())

    def reference(self, arrays: Mapping[str, Array]) -> Reference:
        args, kwargs = self._arguments(arrays)
        return reference_of(self.module, args, kwargs)

    def saved_inputs(self) -> Optional[Details]:
        """The inputs saved with the program, as tensors by name; None if there are none."""
        saved = self._program.example_inputs
        if not saved:
            return None
        tensors = [tensor for _, tensor in flatten_call(*saved)]
        if len(tensors) != len(self.inputs):
            return None
        return {each.name: tensor.detach() for each, tensor in zip(self.inputs, tensors)}

    def captured(self, arrays: Mapping[str, Array], identity: str) -> Captured:
        """As if a script had called it with these inputs."""
        args, kwargs = self._arguments(arrays)
        return Captured(self.module, args, kwargs, (), identity)

    def _inputs(self) -> List[FileInput]:
        """Tensor inputs; the others stay at the values of the export."""
        nodes = {node.name: node for node in self._program.graph.nodes if node.op == "placeholder"}
        found = []
        self._leaves: List[Any] = []  # in the order of the call: a FileInput, or a constant
        for spec in self._program.graph_signature.input_specs:
            if spec.kind.name != "USER_INPUT":
                continue
            if not hasattr(spec.arg, "name") or hasattr(spec.arg, "value"):
                self._leaves.append(getattr(spec.arg, "value", None))
                continue
            found.append(self._input(nodes[spec.arg.name]))
            self._leaves.append(found[-1])
        return found

    def _input(self, node: Any) -> FileInput:
        value = node.meta.get("val")
        if not isinstance(value, self._torch.Tensor):
            raise Unsupported("load", f"input {node.name} is not a tensor")
        shape = [size if isinstance(size, int) else str(size) for size in value.shape]
        whole = not value.is_floating_point() and not value.is_complex()
        dtype = str(value.dtype).partition(".")[2]
        return FileInput(node.name, shape, dtype, self._table_size(node) if whole else None)

    def _table_size(self, node: Any) -> Optional[int]:
        """Rows of the smallest embedding that it indexes."""
        users = [user for user in node.users if "embedding" in str(user.target) and len(user.args) > 1]
        rows = [int(user.args[0].meta["val"].shape[0]) for user in users if user.args[1] is node]
        return min(rows, default=None)

    def _arguments(self, arrays: Mapping[str, Array]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """The inputs in the structure of the module's call."""
        flat = [self._tensor(arrays[x.name], x.dtype) if isinstance(x, FileInput) else x for x in self._leaves]
        args, kwargs = self._torch.utils._pytree.tree_unflatten(flat, self._program.call_spec.in_spec)
        return tuple(args), dict(kwargs)

    def _tensor(self, value: Value, dtype: str) -> Any:
        if isinstance(value, self._torch.Tensor):
            return value
        known = (
            value if value.dtype.kind in "biufc" else value.astype("float32")
        )  # torch accepts only numpy's own types
        return self._torch.from_numpy(known).to(getattr(self._torch, dtype))


def _callable_in_eval(module: Module) -> Any:
    """A module made by torch.export refuses `eval()`, although no part of it depends on the mode."""
    module.train, module.eval = MethodType(_trained, module), MethodType(_in_eval, module)
    return module.eval()


def _trained(module: Module, mode: bool = True) -> Any:
    for part in module.modules():
        part.training = mode
    return module


def _in_eval(module: Module) -> Any:
    return _trained(module, False)

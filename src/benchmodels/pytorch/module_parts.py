"""The parts of a torch module and their tensors, read from its dictionaries: a program may override `parameters()`."""

from __future__ import annotations

from itertools import islice
from typing import Any, Dict, Iterator, List, Optional, Tuple

from benchmodels.arrays import is_tensor
from benchmodels.hooks.import_watch import attribute, is_a, members_of
from benchmodels.types import Module, Value

NUMBERS = (bool, int, float, complex, str, type(None))
OF_TORCH = ("_parameters", "_modules", "_buffers")
MAX_PARTS = 1000  # read of one list or dictionary

Mark = Tuple[Any, Any]  # a value and, for a tensor, its version counter


class ModuleState:
    """A module's state when this was made. Copies nothing: tensors have version counters."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._before = _marks(module)

    def changed(self) -> Optional[str]:
        """The name of something that has changed since; None if no change is visible."""
        after = _marks(self._module)
        names = [*after, *(name for name in self._before if name not in after)]
        return next((name for name in names if not _same(self._before.get(name), after.get(name))), None)


def _marks(module: Module) -> Dict[str, Mark]:
    try:
        parts = list(module.named_modules())
        return {name: (value, _writes(value)) for path, part in parts for name, value in _kept_values(path, part)}
    except Exception:  # an unusual module; treat it as stateless
        return {}


def _kept_values(path: str, part: Module) -> Iterator[Tuple[str, Any]]:
    own = {name: value for name, value in vars(part).items() if name not in OF_TORCH}
    for name, value in [*dict(part._buffers).items(), *own.items()]:
        place = f"{path}.{name}" if path else name
        inside = value.items() if type(value) is dict else enumerate(value) if isinstance(value, (list, tuple)) else ()
        for key, one in [(place, value), *((f"{place}.{key}", one) for key, one in islice(inside, MAX_PARTS))]:
            if is_tensor(one) or isinstance(one, NUMBERS):
                yield key, one


def _writes(value: Value) -> Any:
    try:
        return value._version if is_tensor(value) else None
    except RuntimeError:  # made in inference mode, where there is no counter
        return None


def _same(before: Optional[Mark], after: Optional[Mark]) -> bool:
    if before is None or after is None:
        return before is after
    if is_tensor(before[0]) or is_tensor(after[0]):
        return before[0] is after[0] and before[1] == after[1]
    return type(before[0]) is type(after[0]) and bool(before[0] == after[0] or before[0] is after[0])


def parts_of(module: Module) -> Iterator[Tuple[str, Any]]:
    """The module and everything inside it with paths, each once, in the order of `named_modules`."""
    waiting = [("", module)]
    seen = set()
    while waiting:
        path, part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield path, part
            inner = [(f"{path}.{name}" if path else str(name), each) for name, each in children_of(part).items()]
            waiting += reversed(inner)


def children_of(module: Module) -> Dict[Any, Any]:
    """Its direct sub-modules by name."""
    return {name: part for name, part in _kept(module, "_modules") if part is not None}


def parameters_of(module: Module) -> List[Tuple[str, Any]]:
    """Parameters of the module and its parts, each once."""
    return _tensors(module, "_parameters")


def buffers_of(module: Module) -> List[Tuple[str, Any]]:
    return _tensors(module, "_buffers")


def own_tensors(part: Module, kind: str) -> Dict[Any, Any]:
    """`_parameters` or `_buffers` of this one module."""
    return {name: tensor for name, tensor in _kept(part, kind) if tensor is not None}


def _tensors(module: Module, kind: str) -> List[Tuple[str, Any]]:
    found: List[Tuple[str, Any]] = []
    seen = set()
    for path, part in parts_of(module):
        for name, tensor in own_tensors(part, kind).items():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                found.append((f"{path}.{name}" if path else str(name), tensor))
    return found


def _kept(module: Module, name: str) -> List[Tuple[Any, Any]]:
    kept = attribute(module, name)
    if is_a(kept, dict):
        return members_of(kept)
    if type(module).__module__.startswith("torch.jit"):  # stored by TorchScript, read by torch's own code
        return list(getattr(module, name).items())
    raise AttributeError(f"no {name}: the module is not initialised or not a usual one")

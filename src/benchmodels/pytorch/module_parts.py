"""The parts of a torch module and their tensors, read where it keeps them: methods such as `parameters` may be the program's own."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from benchmodels.hooks.looking import attribute, is_a, members_of


def parts_of(module: Any) -> Iterator[Tuple[str, Any]]:
    """The module and everything inside of it with their paths, each once, in the order of `named_modules`."""
    waiting = [("", module)]
    seen = set()
    while waiting:
        path, part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield path, part
            inner = [(f"{path}.{name}" if path else str(name), each) for name, each in children_of(part).items()]
            waiting += reversed(inner)


def children_of(module: Any) -> Dict[Any, Any]:
    """The modules that it holds itself, by name."""
    return {name: part for name, part in _kept(module, "_modules") if part is not None}


def parameters_of(module: Any) -> List[Tuple[str, Any]]:
    """Of the module and its parts, each once."""
    return _tensors(module, "_parameters")


def buffers_of(module: Any) -> List[Tuple[str, Any]]:
    return _tensors(module, "_buffers")


def own_tensors(part: Any, kind: str) -> Dict[Any, Any]:
    """`_parameters` or `_buffers` of this one module."""
    return {name: tensor for name, tensor in _kept(part, kind) if tensor is not None}


def _tensors(module: Any, kind: str) -> List[Tuple[str, Any]]:
    found: List[Tuple[str, Any]] = []
    seen = set()
    for path, part in parts_of(module):
        for name, tensor in own_tensors(part, kind).items():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                found.append((f"{path}.{name}" if path else str(name), tensor))
    return found


def _kept(module: Any, name: str) -> List[Tuple[Any, Any]]:
    kept = attribute(module, name)
    if is_a(kept, dict):
        return members_of(kept)
    if type(module).__module__.startswith("torch.jit"):  # kept by TorchScript, and given out by torch's own code
        return list(getattr(module, name).items())
    raise AttributeError(f"it has no {name}: it was not initialised, or is no usual module")

"""Structures of tensors: flattened into named tensors, and rebuilt with other tensors.

A model may take and return anything: tuples, dictionaries, dataclasses, caches. The order of its tensors is decided here
alone, never by what is registered or imported, so that it is the same in every process.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import sys
import types
from importlib import import_module
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    MutableMapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from benchmodels.arrays import is_tensor, to_array
from benchmodels.types import Details, Module, Tensor, Value

MAX_DEPTH = 64
SIMPLE = (type(None), bool, int, float, complex, str, bytes, enum.Enum)
OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
PLAIN_CONTAINERS = (dict, list, tuple)


class Named(NamedTuple):
    """A tensor and where it was found, such as `past.layers.0.keys`."""

    name: str
    tensor: Tensor


def read_through(result: Value) -> Value:
    """A model's result, computed: an iterator, such as a generator's, does its work only when it is read."""
    return list(result) if isinstance(result, Iterator) else result


def flatten(value: Value, root: str = "output") -> List[Named]:
    """The tensors in `value` in a fixed order; `root`: the name if `value` is a tensor itself.

    Names are unique; a tensor that occurs twice is listed twice.
    """
    return unique_names([Named(path or root, tensor) for path, tensor in _walk(value, "", set(), 0)])


def flatten_call(args: Sequence[Value], kwargs: Mapping[str, Value], names: Sequence[str] = ()) -> List[Named]:
    """The tensors among the arguments of a call. `names`: of the positional ones, as far as known."""
    found: List[Named] = []
    seen: Set[int] = set()
    positional = [(names[i] if i < len(names) else f"arg{i}", value) for i, value in enumerate(args)]
    for name, value in [*positional, *kwargs.items()]:
        found += [Named(path, tensor) for path, tensor in _walk(value, name, seen, 0)]
    return unique_names(found)


def unique_names(found: Sequence[Named]) -> List[Named]:
    """The same tensors; duplicates of a name get new ones."""
    taken: Set[str] = {name for name, _ in found}
    used: Set[str] = set()
    result = []
    for name, tensor in found:
        chosen, number = name, 2
        while chosen in used or (chosen != name and chosen in taken):
            chosen, number = f"{name}#{number}", number + 1
        used.add(chosen)
        result.append(Named(chosen, tensor))
    return result


def rebuilt(value: Value, replace: Callable[[Any], Any]) -> Any:
    """A copy of `value` with each tensor replaced by `replace(tensor)`, in the order of `flatten`.

    Shares nothing mutable with the original, as far as it can be copied.
    """
    return _rebuilt(value, replace, {}, 0)


def rebuilt_call(
    args: Sequence[Value], kwargs: Mapping[str, Value], replace: Callable[[Any], Any]
) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The same for the arguments of a call, in the order of `flatten_call`."""
    copies: Dict[int, Any] = {}
    new_args = tuple(_rebuilt(value, replace, copies, 0) for value in args)
    return new_args, {name: _rebuilt(value, replace, copies, 0) for name, value in kwargs.items()}


def is_plain(value: Value) -> bool:
    """Whether it consists of tensors, simple values and Python's own containers only."""
    if is_tensor(value) or _is_simple(value):
        return True
    if isinstance(value, Mapping):
        return type(value) in PLAIN_CONTAINERS and all(is_plain(child) for child in value.values())
    return isinstance(value, PLAIN_CONTAINERS) and all(is_plain(child) for child in value)


def _is_simple(value: Value) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(value, SIMPLE) or (torch is not None and isinstance(value, (torch.dtype, torch.device)))


def _is_opaque(value: Value) -> bool:
    """Neither searched nor copied: classes, functions, modules of Python and torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return isinstance(value, OPAQUE)
    symbols = (torch.SymInt, torch.SymFloat, torch.SymBool)  # numbers while a model is traced
    return isinstance(value, (*OPAQUE, torch.nn.Module, torch.Generator, *symbols))


def _walk(value: Value, path: str, seen: Set[int], depth: int) -> Iterator[Tuple[str, Any]]:
    if is_tensor(value):
        yield path, value
        return
    children = _children(value)
    if children is None or depth > MAX_DEPTH:
        return
    if _is_object(value):  # an object may occur twice, or contain itself
        if id(value) in seen:
            return
        seen.add(id(value))
    for key, child in children:
        yield from _walk(child, f"{path}.{key}" if path else key, seen, depth + 1)


def _rebuilt(value: Value, replace: Callable[[Any], Any], copies: Dict[int, Any], depth: int) -> Any:
    if is_tensor(value):
        return replace(value)
    if _is_simple(value) or _is_opaque(value) or depth > MAX_DEPTH:
        return value
    children = _children(value)
    if children is None:
        return _deep_copy(value)
    if not _is_object(value):
        return _with_children(value, [_rebuilt(child, replace, copies, depth + 1) for _, child in children])
    if id(value) not in copies:
        copies[id(value)] = empty = _shallow_copy(value)
        for key, child in children:
            _set(empty, key, _rebuilt(child, replace, copies, depth + 1))
    return copies[id(value)]


def _is_object(value: Value) -> bool:
    return not isinstance(value, (Mapping, list, tuple))


def _children(value: Value) -> Optional[List[Tuple[str, Any]]]:
    """The parts of a container with their keys; None: not a container."""
    if _is_simple(value) or _is_opaque(value):
        return None
    if isinstance(value, Mapping):
        return [(str(key), value[key]) for key in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (list, tuple)):
        return [(str(index), child) for index, child in enumerate(value)]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return [(name, getattr(value, name)) for name in names]
    attributes = _attributes(value)
    return attributes or None


def _attributes(value: Value) -> List[Tuple[str, Any]]:
    slots = [name for kind in type(value).__mro__ for name in _as_list(kind.__dict__.get("__slots__", ()))]
    in_slots = [(name, getattr(value, name)) for name in slots if name[:2] != "__" and hasattr(value, name)]
    return [*in_slots, *getattr(value, "__dict__", {}).items()]


def _as_list(slots: Any) -> List[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _with_children(value: Value, children: List[Any]) -> Any:
    """A container of the same type with these parts."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(children)
    if isinstance(value, MutableMapping):
        new = {} if kind is dict else copy.copy(value)
        for key, child in zip(list(value), children):
            new[key] = child
        return new
    if isinstance(value, Mapping):
        new_kind: Any = kind
        return new_kind(dict(zip(value, children)))
    if hasattr(value, "_fields"):
        return kind(*children)
    return kind(children)


def _shallow_copy(value: Value) -> Any:
    try:
        return copy.copy(value)
    except Exception:
        empty = object.__new__(type(value))
        getattr(empty, "__dict__", {}).update(getattr(value, "__dict__", {}))
        return empty


def _set(value: Value, name: str, part: Module) -> None:
    attributes = getattr(value, "__dict__", {})
    if name in attributes:
        attributes[name] = part
    else:
        object.__setattr__(value, name, part)


def _deep_copy(value: Value) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # such as a lock or a file, which is then shared
        return value


def to_arrays(value: Value, root: str = "output") -> Details:
    """The tensors in `value` as new numpy arrays by name; types that numpy lacks become float32, exactly.

    Without tensors: its numpy arrays, and its numbers as one array.
    """
    tensors = {name: to_array(tensor) for name, tensor in flatten(value, root)}
    return tensors or _numbers_in(value, root)


def _numbers_in(value: Value, root: str) -> Details:
    numpy = import_module("numpy")
    numbers: List[Any] = []
    arrays: List[Named] = []

    def visit(value: Value, path: str, depth: int) -> None:
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            if value.dtype.kind in "biufc":
                arrays.append(Named(path or root, numpy.array(value)))
        elif isinstance(value, (bool, int, float, complex)):
            numbers.append(value)
        elif isinstance(value, (Mapping, list, tuple)) and depth < MAX_DEPTH:
            for key, child in _children(value) or ():
                visit(child, f"{path}.{key}" if path else key, depth + 1)

    visit(value, "", 0)
    found = dict(unique_names(arrays))
    if numbers:
        array = numpy.array(numbers)
        found["numbers"] = array if array.dtype.kind in "biufc" else array.astype(float)
    return found

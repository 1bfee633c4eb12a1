"""The signature of a call: names, shapes, dtypes and simple values of its inputs; never the tensors themselves."""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import sys
import types
from typing import Any, Callable, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.discover.callers import is_library
from benchmodels.hooks.import_watch import (
    ABSENT,
    attribute,
    attributes_of,
    class_attribute,
    is_a,
    members_of,
    pass_on_signal,
)
from benchmodels.pytorch.unrecorded import Undescribed, is_torch_tensor, shape_of, unrecorded
from benchmodels.types import Details, Value

SIMPLE = (type(None), bool, int, float, complex, str, bytes)
NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
CONTAINERS = (dict, list, tuple, set, frozenset)
MAX_DEPTH = 12
MANY = 32  # simple values in one list: beyond this only their number counts
LONG_TEXT = 120


class Leaf(NamedTuple):
    """One input or part of an input, such as `past.layers.0.keys`: a tensor's shape and dtype, or a value as text."""

    name: str
    shape: Optional[Tuple[int, ...]] = None
    dtype: Optional[str] = None
    value: Optional[str] = None

    def as_dict(self) -> Details:
        if self.shape is None:
            return {"name": self.name, "value": self.value}
        return {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}={self.value}"
        return f"{self.name} {'×'.join(map(str, self.shape)) or 'scalar'} {self.dtype}"


class Signature(NamedTuple):
    """`leaves` in the order of the function's parameters."""

    leaves: Tuple[Leaf, ...]

    def canonical(self) -> List[List[Any]]:
        """Independent of how the call was written: positional or by keyword, in any order."""
        rows = ([name, None if shape is None else list(shape), *rest] for name, shape, *rest in self.leaves)
        return sorted(rows, key=repr)

    def __str__(self) -> str:
        return ", ".join(str(leaf) for leaf in self.leaves if leaf.shape is not None)


def signature_of(function: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Signature:
    """Of the call `function(*args, **kwargs)`; `function` is a bound method."""
    leaves: List[Leaf] = []
    for name, value in bind(function, args, kwargs):
        leaves += walk(name, value)
    return Signature(tuple(leaves))


def bind(function: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> List[Tuple[str, Any]]:
    """Arguments by parameter name; omits repeated defaults, and None passed to `**kwargs`."""
    found = parameters_of(function)
    try:
        bound = found.bind(*args, **kwargs).arguments
    except TypeError:  # the call itself will fail, or its parameters are unknown
        return [(f"arg{index}", value) for index, value in enumerate(args)] + sorted(kwargs.items())
    result: List[Tuple[str, Any]] = []
    for name, value in bound.items():
        parameter = found.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            result += [(f"{name}.{index}", one) for index, one in enumerate(value)]
        elif parameter.kind is parameter.VAR_KEYWORD:
            result += sorted((key, one) for key, one in value.items() if one is not None)
        elif not _repeats(value, parameter.default):
            result.append((name, value))
    return result


def positional_names(function: Any, count: int) -> Tuple[str, ...]:
    """Names of the first `count` positional parameters."""
    names = []
    for parameter in parameters_of(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            break
        names.append(parameter.name)
    return tuple(names[:count])


def parameters_of(function: Any) -> inspect.Signature:
    try:
        if is_a(function, (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)):
            return inspect.signature(function)
    except (TypeError, ValueError):
        pass
    try:
        names = [argument.name for argument in function.schema.arguments if argument.name != "self"]  # TorchScript
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    except Exception as error:  # not TorchScript either
        pass_on_signal(error)
        return inspect.Signature()


def _repeats(value: Value, default: Any) -> bool:
    return type(value) in SIMPLE and type(value) is type(default) and value == default


def walk(name: str, value: Value) -> List[Leaf]:
    """The leaves of one input. Of a library's object, such as a cache, only the tensors: the rest changes with its version.

    Runs none of the program's code. Raises Undescribed for a tensor that cannot be described.
    """
    leaves: List[Tuple[Leaf, Any]] = []
    with unrecorded():
        _walk(name, value, leaves, (), False)
    return [leaf for leaf, _ in leaves]


def tensors_in(args: Sequence[Value], kwargs: Mapping[str, Value]) -> List[Tuple[str, Any]]:
    """The torch tensors among and inside the arguments of a call, named by position or keyword."""
    leaves: List[Tuple[Leaf, Any]] = []
    with unrecorded():
        for name, value in (*((str(index), value) for index, value in enumerate(args)), *kwargs.items()):
            _walk(name, value, leaves, (), True)
    return [(leaf.name, value) for leaf, value in leaves if is_torch_tensor(value)]


def _walk(name: str, value: Value, leaves: List[Tuple[Leaf, Any]], above: Tuple[int, ...], tensors_only: bool) -> None:
    try:
        shape = tensor_shape(value)
    except Undescribed as what:
        raise Undescribed(f"its input '{name}' is {what}") from None
    if shape is not None:
        leaves.append((Leaf(name, shape, " ".join((dtype_name(value.dtype), *layout_of(value)))), value))
        return
    text, of_library = simple_text(value), False
    parts: List[Tuple[str, Any]] = []
    if text is None and (len(above) > MAX_DEPTH or id(value) in above):
        text = f"<{type(value).__name__}>"
    elif text is None:
        is_object = not is_a(value, CONTAINERS)
        of_library = is_object and _is_of_library(type(value))
        parts = _parts(value, of_library)
        if is_object or not parts:
            text = f"<{type(value).__name__}>"
        elif len(parts) > MANY and all(simple_text(part) is not None for _, part in parts):
            text, parts = f"<{len(parts)} × {type(parts[0][1]).__name__}>", []
    if text is not None and not tensors_only:
        leaves.append((Leaf(name, value=text), value))
    for key, part in parts:
        _walk(f"{name}.{key}", part, leaves, (*above, id(value)), tensors_only or of_library)


def _is_of_library(kind: type) -> bool:
    file = attribute(sys.modules.get(kind.__module__), "__file__")
    return type(file) is not str or is_library(file)


def tensor_shape(value: Value) -> Optional[Tuple[int, ...]]:
    """The shape of any framework's tensor or array; None for anything else. Raises Undescribed if its shape is unknown."""
    if is_torch_tensor(value):
        return shape_of(value)
    kind = type(value)
    if is_a(value, (*SIMPLE, type)) or class_attribute(kind, "dtype") is ABSENT or not _is_of_library(kind):
        return None
    try:
        return tuple(int(size) for size in value.shape)
    except Exception as error:  # it only looked like an array
        pass_on_signal(error)
        return None


def tensor_text(value: Value) -> Optional[str]:
    """Shape and dtype; None if it is not a tensor."""
    try:
        shape = tensor_shape(value)
    except Undescribed as what:
        return str(what)
    return None if shape is None else f"tensor {list(shape)} {dtype_name(value.dtype)}"


def layout_of(value: Value) -> Tuple[str, ...]:
    """A tensor's memory layout where it is unusual: `sparse_coo`, `channels_last`."""
    if not is_torch_tensor(value):
        return ()
    layout = str(value.layout).replace("torch.", "")
    if layout != "strided":
        return (layout,)
    formats = {4: "channels_last", 5: "channels_last_3d"}
    if value.dim() not in formats or value.is_contiguous():
        return ()
    name = formats[value.dim()]
    return (name,) if value.is_contiguous(memory_format=getattr(sys.modules["torch"], name)) else ()


def dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype)).replace("torch.", "")


def simple_text(value: Value) -> Optional[str]:
    """A simple value as text; None for anything else. Devices all read alike: a model is the same on any of them."""
    kind = type(value)
    if is_a(value, enum.Enum):
        return f"{kind.__name__}.{attribute(value, '_name_')}"
    if is_a(value, SIMPLE):
        plain: Any = next(kind for kind in SIMPLE if is_a(value, kind))  # numpy's floats as Python's
        text = plain.__repr__(value)
        return text if len(text) <= LONG_TEXT else f"{text[:40]}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if is_a(value, NAMED):
        return f"<{_name_of(value)}>"
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "layout", "memory_format"):
        return str(value)
    if kind.__module__.startswith("torch") and kind.__name__ in ("device", "Generator"):
        return f"<{kind.__name__}>"
    return None


def _name_of(value: Value) -> str:
    if is_a(value, types.MethodType):
        value = value.__func__
    if is_a(value, type):
        return str(type.__getattribute__(value, "__qualname__"))
    named = attribute(value, "__name__") if is_a(value, types.ModuleType) else getattr(value, "__qualname__", None)
    return named if type(named) is str else type(value).__name__


def _parts(value: Value, everything: bool) -> List[Tuple[str, Any]]:
    """The members of a container or attributes of an object; `everything` includes names with an underscore."""
    if is_a(value, dict):
        return sorted(((key_text(key), part) for key, part in members_of(value)), key=lambda part: part[0])
    if is_a(value, tuple):
        fields = class_attribute(type(value), "_fields")
        parts = [part for _, part in members_of(value)]
        if type(fields) is tuple and len(fields) == len(parts):
            return list(zip(map(str, fields), parts))
    if is_a(value, (list, tuple)):
        return [(str(index), part) for index, part in members_of(value)]
    if is_a(value, (set, frozenset)):
        kind = set if is_a(value, set) else frozenset
        return [(str(index), text) for index, text in enumerate(sorted(map(_text_of, kind.__iter__(value))))]
    found = attributes_of(value)
    if "_parameters" in found and "_modules" in found:
        return []  # a model given to a model
    return [(name, found[name]) for name in sorted(found) if name[:2] != "__" and (everything or name[0] != "_")]


def key_text(key: Any) -> str:
    """A dictionary's key as text."""
    return key if type(key) is str else _text_of(key)


def _text_of(value: Value) -> str:
    text = simple_text(value)
    return f"<{type(value).__name__}>" if text is None else text


def key_maker(tensor_types: FrozenSet[type]) -> Callable[[Sequence[Any], Mapping[str, Any]], Tuple[Any, ...]]:
    """A function that computes a call's key in a microsecond or two: calls with equal keys have the same leaves.

    The converse does not hold: calls that were written differently may have the same leaves and different keys.
    """
    simple = frozenset((type(None), bool, int, float, str))

    def add(value: Value, into: List[Any], depth: int = 0) -> None:
        kind = type(value)
        if kind in tensor_types:
            if value.is_nested:
                raise Undescribed("a nested tensor")
            into.extend((value.shape, value.dtype, value.layout))
        elif kind in simple:
            into.append(kind)
            into.append(value)
        elif (kind is tuple or kind is list) and len(value) <= MANY and depth < MAX_DEPTH:
            into.append(len(value))
            for part in value:
                add(part, into, depth + 1)
        elif kind is dict and depth < MAX_DEPTH:
            into.append(len(value))
            for key, part in value.items():
                into.append(key_text(key))
                add(part, into, depth + 1)
        else:
            into.extend(walk("", value))

    def key(args: Sequence[Value], kwargs: Mapping[str, Value]) -> Tuple[Any, ...]:
        made: List[Any] = []
        for value in args:
            add(value, made)
        for name, value in kwargs.items():
            made.append(name)
            add(value, made)
        return tuple(made)

    return key

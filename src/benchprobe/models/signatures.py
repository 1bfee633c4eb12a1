"""The inputs of a call as what matters of them: names, shapes, dtypes and simple values; never the tensors themselves."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import sys
import types
from collections.abc import Mapping as AnyMapping
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchprobe.models.callers import is_library

SIMPLE = (type(None), bool, int, float, complex, str, bytes)
NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
CONTAINERS = (AnyMapping, list, tuple, set, frozenset)
MAX_DEPTH = 12
MANY = 32  # simple values in one list: their number counts, not each of them
LONG_TEXT = 120
_NO_PARAMETERS: Any = inspect.Signature()


class Leaf(NamedTuple):
    """One input, or a part of one, such as `past.layers.0.keys`: a tensor's shape and dtype, or a value as text."""

    name: str
    shape: Optional[Tuple[int, ...]] = None
    dtype: Optional[str] = None
    value: Optional[str] = None

    def as_dict(self) -> Dict[str, Any]:
        if self.shape is None:
            return {"name": self.name, "value": self.value}
        return {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}={self.value}"
        return f"{self.name} {'×'.join(map(str, self.shape)) or 'scalar'} {self.dtype}"


class Signature(NamedTuple):
    """`leaves` in the order of the function's parameters. `items`: the first dimension that all tensors share."""

    leaves: Tuple[Leaf, ...]
    items: Optional[int]

    def canonical(self) -> List[List[Any]]:
        """The same however the call was written: positional or by keyword, in whatever order."""
        rows = [
            [leaf.name, None if leaf.shape is None else list(leaf.shape), leaf.dtype, leaf.value]
            for leaf in self.leaves
        ]
        return sorted(rows, key=repr)

    def __str__(self) -> str:
        return ", ".join(str(leaf) for leaf in self.leaves if leaf.shape is not None)


def signature_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Signature:
    """What `function(*args, **kwargs)` is given; `function` is a method without its `self`."""
    leaves: List[Leaf] = []
    for name, value in bind(function, args, kwargs):
        leaves += walk(name, value)
    return Signature(tuple(leaves), _items(leaves))


def bind(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> List[Tuple[str, Any]]:
    """The arguments by the names of the parameters, without those that only repeat a default, or say None to nobody in particular."""
    found = parameters_of(function)
    try:
        bound = found.bind(*args, **kwargs).arguments
    except TypeError:  # the call will fail by itself, or its parameters are unknown
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
    """The names of the first `count` parameters, as far as they have names of their own."""
    names = []
    for parameter in parameters_of(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            break
        names.append(parameter.name)
    return tuple(names[:count])


def parameters_of(function: Any) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        pass
    try:
        names = [argument.name for argument in function.schema.arguments if argument.name != "self"]  # TorchScript
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    except Exception:
        found: inspect.Signature = _NO_PARAMETERS
        return found


def _repeats(value: Any, default: Any) -> bool:
    return isinstance(value, SIMPLE) and type(value) is type(default) and value == default


def walk(name: str, value: Any) -> List[Leaf]:
    """The leaves of one input. Of a library's object, such as a cache, only the tensors: the rest changes with its version."""
    leaves: List[Leaf] = []
    _walk(name, value, leaves, (), False)
    return leaves


def _walk(name: str, value: Any, leaves: List[Leaf], above: Tuple[int, ...], tensors_only: bool) -> None:
    shape = tensor_shape(value)
    if shape is not None:
        leaves.append(Leaf(name, shape, " ".join((dtype_name(value.dtype), *layout_of(value)))))
        return
    text = simple_text(value)
    if text is None and (len(above) > MAX_DEPTH or id(value) in above):
        text = f"<{type(value).__name__}>"
    if text is not None:
        if not tensors_only:
            leaves.append(Leaf(name, value=text))
        return
    is_object = not isinstance(value, CONTAINERS)
    of_library = is_object and _is_of_library(type(value))
    parts = _parts(value, of_library)
    if is_object or not parts:
        if not tensors_only:
            leaves.append(Leaf(name, value=f"<{type(value).__name__}>"))
        tensors_only = tensors_only or of_library
    elif len(parts) > MANY and all(simple_text(part) is not None for _, part in parts):
        if not tensors_only:
            leaves.append(Leaf(name, value=f"<{len(parts)} × {type(parts[0][1]).__name__}>"))
        return
    for key, part in parts:
        _walk(f"{name}.{key}", part, leaves, (*above, id(value)), tensors_only)


def _is_of_library(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is None or is_library(file)


def tensor_shape(value: Any) -> Optional[Tuple[int, ...]]:
    """The shape of a tensor or array of any framework; None: it is none."""
    if isinstance(value, (*SIMPLE, type)) or not hasattr(type(value), "dtype"):
        return None
    try:
        return tuple(int(size) for size in value.shape)
    except Exception:
        return None


def tensor_text(value: Any) -> Optional[str]:
    """Shape and dtype; None: it is no tensor."""
    shape = tensor_shape(value)
    return None if shape is None else f"tensor {list(shape)} {dtype_name(value.dtype)}"


def layout_of(value: Any) -> Tuple[str, ...]:
    """How a tensor lies in memory, where that is not the usual way: `sparse_coo`, `channels_last`."""
    layout = str(getattr(value, "layout", "torch.strided")).replace("torch.", "")
    if layout != "strided":
        return (layout,)
    torch = sys.modules.get("torch")
    formats = {4: "channels_last", 5: "channels_last_3d"}
    if torch is None or not isinstance(value, torch.Tensor) or value.dim() not in formats or value.is_contiguous():
        return ()
    name = formats[value.dim()]
    return (name,) if value.is_contiguous(memory_format=getattr(torch, name)) else ()


def dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype)).replace("torch.", "")


def simple_text(value: Any) -> Optional[str]:
    """A simple value as text; None: it is none. Devices are all alike: a model is the same one on any."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, SIMPLE):
        text = _plain_repr(value)
        return text if len(text) <= LONG_TEXT else f"{text[:40]}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if isinstance(value, NAMED):
        return f"<{getattr(value, '__qualname__', getattr(value, '__name__', type(value).__name__))}>"
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "layout", "memory_format"):
        return str(value)
    if kind.__module__.startswith("torch") and kind.__name__ in ("device", "Generator"):
        return f"<{kind.__name__}>"
    return None


def _plain_repr(value: Any) -> str:
    """Of a subclass, such as numpy's floats, as of the class itself."""
    for kind in (bool, int, float, complex, str, bytes):
        if isinstance(value, kind):
            return kind.__repr__(value)
    return repr(value)


def _parts(value: Any, everything: bool) -> List[Tuple[str, Any]]:
    """What is inside a container or an object, by name; `everything`: attributes with an underscore, too."""
    if isinstance(value, AnyMapping):
        return sorted(((str(key), value[key]) for key in value), key=lambda part: part[0])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (list, tuple)):
        return [(str(index), part) for index, part in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [(str(index), part) for index, part in enumerate(sorted(value, key=repr))]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return [(name, getattr(value, name)) for name in names]
    if hasattr(value, "_parameters") and hasattr(value, "_modules"):
        return []  # a model given to a model
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if hasattr(value, name):
                found.setdefault(name, getattr(value, name))
    return [(name, found[name]) for name in sorted(found) if name[:2] != "__" and (everything or name[0] != "_")]


def _items(leaves: Sequence[Leaf]) -> Optional[int]:
    first = {leaf.shape[0] for leaf in leaves if leaf.shape}
    return first.pop() if len(first) == 1 else None


def key_maker(tensor_types: FrozenSet[type]) -> Callable[[Sequence[Any], Mapping[str, Any]], Tuple[Any, ...]]:
    """A function that gives equal keys only to calls with the same leaves, in a microsecond or two.

    Calls with the same leaves may have different keys, where they were written differently.
    """
    simple = frozenset((type(None), bool, int, float, str))

    def add(value: Any, into: List[Any]) -> None:
        kind = type(value)
        if kind in tensor_types:
            into.extend((value.shape, value.dtype, value.layout))
        elif kind in simple:
            into.append(kind)
            into.append(value)
        elif (kind is tuple or kind is list) and len(value) <= MANY:
            into.append(len(value))
            for part in value:
                add(part, into)
        elif kind is dict:
            into.append(len(value))
            for key, part in value.items():
                into.append(str(key))
                add(part, into)
        else:
            into.extend(walk("", value))

    def key(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tuple[Any, ...]:
        made: List[Any] = []
        for value in args:
            if type(value) in tensor_types:
                made.extend((value.shape, value.dtype, value.layout))
            else:
                add(value, made)
        for name, value in kwargs.items():
            made.append(name)
            add(value, made)
        return tuple(made)

    return key

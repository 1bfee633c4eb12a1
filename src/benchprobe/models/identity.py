"""Who a model is: a hash of its structure (classes, settings, shapes and dtypes, its own source) and of its inputs' signature.

The same in every process, on every machine and device, with and without gradients, trained or not; weights count only if that is asked for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import types
from functools import lru_cache
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Tuple

from benchprobe.models.signatures import Signature, dtype_name, simple_text
from benchprobe.models.source_text import function_text, is_own, names_this_machine, texts_of

LENGTH = 16
COMPILED = "torch._dynamo.eval_frame.OptimizedModule"
MAX_VALUES = 4096  # in a list that is a setting
NOT_SETTINGS = frozenset(("training", "name_or_path"))
MARKS_OF_LIBRARIES = (
    "__",
    "_is_",
    "_torchdynamo",
    "_dynamo",
    "_compiled",
    "_fsdp",
    "_ddp",
    "_hf_",
)  # left on a module as it is used


def identity_of(structure: str, signature: Signature) -> str:
    """Of a model of that structure, called with such inputs."""
    return _digest([structure, signature.canonical()])


def structure_of(module: Any) -> str:
    """The hash of everything but the inputs."""
    parts: List[Any] = []
    classes: Dict[str, Any] = {}
    tensors: Dict[int, Tuple[str, Any]] = {}
    modules: Dict[int, str] = {}
    for path, part in _parts(module, "", ()):
        if id(part) in modules:
            parts.append([path, "same", modules[id(part)]])
            continue
        modules[id(part)] = path
        name = class_name(part)
        parts.append([path, name, settings_of(part), _tensors_of(part, path, tensors)])
        if name not in classes and is_own(type(part)):
            classes[name] = texts_of(type(part), ("forward", "__call__"))
    return _digest([parts, sorted(classes.items())])


def _parts(module: Any, path: str, above: Tuple[int, ...]) -> Iterator[Tuple[str, Any]]:
    """The module and its parts with their paths; a part that was compiled counts as what it was before."""
    module = uncompiled(module)
    yield path, module
    for name, part in module._modules.items():
        if part is not None and id(part) not in above:
            yield from _parts(part, f"{path}.{name}" if path else name, (*above, id(module)))


def uncompiled(module: Any) -> Any:
    """What `torch.compile` was given, where this is what it gave back."""
    kind = type(module)
    while f"{kind.__module__}.{kind.__qualname__}" == COMPILED and module._modules.get("_orig_mod") is not None:
        module = module._modules["_orig_mod"]
        kind = type(module)
    return module


def class_name(module: Any) -> str:
    """With its module; `__main__` for a class of the script, and torch.nn's own without the file they are in."""
    original = getattr(module, "original_name", None)  # of a class that TorchScript compiled
    if isinstance(original, str) and type(module).__module__.startswith("torch.jit"):
        return f"torch.jit.{original}"
    kind = type(module)
    place = kind.__module__
    if place == "__mp_main__":
        place = "__main__"
    elif place.startswith("torch.nn.modules."):
        place = "torch.nn"
    return f"{place}.{kind.__qualname__}"


def settings_of(module: Any) -> List[List[str]]:
    """What a module was set to, as far as it is simple. Of torch's own classes: what their constructors take."""
    kind: Any = type(module)
    if kind.__module__.startswith("torch.jit"):
        return [["code", _jit_code(module)]]
    values = {name: value for name, value in vars(module).items() if name not in NOT_SETTINGS}
    if kind.__module__.startswith(("torch.nn.", "torch.ao.")):
        values = {name: value for name, value in values.items() if name in _constructor_names(kind)}
    elif not is_own(kind):
        values = {name: value for name, value in values.items() if not name.startswith("_")}
    else:
        base = _base_attributes(kind)
        values = {k: value for k, value in values.items() if k not in base and not k.startswith(MARKS_OF_LIBRARIES)}
    own = is_own(kind)
    texts = ((name, _setting_text(values[name], own, 0)) for name in sorted(values))
    return [[name, text] for name, text in texts if text is not None]


def _setting_text(value: Any, own: bool, depth: int) -> Optional[str]:
    """None: not a setting. Of the user's own classes, what is inside of dictionaries and plain objects counts, too."""
    if isinstance(value, str) and names_this_machine(value):
        return None
    if isinstance(value, types.FunctionType) and own and is_own(value):
        return function_text(value) or value.__qualname__
    text = simple_text(value)
    if text is not None or depth > 3:
        return text
    if isinstance(value, (list, tuple)):
        parts = [_setting_text(part, own, depth + 1) for part in value[:MAX_VALUES]]
        return None if None in parts else f"{len(value)}[{','.join(str(part) for part in parts)}]"
    if not own:
        return None
    if isinstance(value, dict):
        inner = value
    elif dataclasses.is_dataclass(value) or isinstance(value, types.SimpleNamespace):
        inner = vars(value)
    else:
        return None
    told = [(str(key), _setting_text(inner[key], own, depth + 1)) for key in inner]
    return json.dumps(sorted((key, part) for key, part in told if part is not None))


@lru_cache(maxsize=10_000)
def _constructor_names(kind: type) -> FrozenSet[str]:
    names: List[str] = []
    for one in kind.__mro__:
        if "__init__" in one.__dict__ and one.__module__.startswith("torch."):
            try:
                names += inspect.signature(one.__dict__["__init__"]).parameters
            except (TypeError, ValueError):
                pass
    return frozenset(names)


def _base_attributes(kind: type) -> FrozenSet[str]:
    """What every module has in its dictionary, whatever its class."""
    base = next((one for one in kind.__mro__ if one.__module__ == "torch.nn.modules.module"), None)
    return _attributes_of_bare(base) if base is not None else frozenset()


@lru_cache(maxsize=10_000)
def _attributes_of_bare(base: type) -> FrozenSet[str]:
    return frozenset(vars(base())) | {"_compiled_call_impl"}


def _jit_code(module: Any) -> str:
    try:
        return "".join(str(module.code).split())
    except Exception:  # a part that has no method of its own
        return ""


def _tensors_of(module: Any, path: str, seen: Dict[int, Tuple[str, Any]]) -> List[List[Any]]:
    """Names, shapes and dtypes of its own parameters and buffers; one that was there before is told by its first name."""
    found = []
    for kind, own in (("parameter", module._parameters), ("buffer", module._buffers)):
        for name in sorted(own.keys()):
            tensor = own[name]
            if tensor is None:
                continue
            if id(tensor) in seen:
                found.append([kind, name, "same", seen[id(tensor)][0]])
                continue
            seen[id(tensor)] = (f"{path}.{name}", tensor)  # held, so that no other one gets its number
            found.append([kind, name, list(tensor.shape), dtype_name(tensor.dtype)])
    return found


def _digest(what: Any) -> str:
    text = json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

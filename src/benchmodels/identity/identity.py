"""A model's identity: a hash of its structure (classes, settings, shapes, dtypes, the user's code) and its inputs' signature.

The same in every process, on every machine and device, with and without gradients, trained or not. The values of weights
count only on request.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import sys
import types
from functools import lru_cache
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

from benchmodels.hooks.import_watch import (
    ABSENT,
    attribute,
    attributes_of,
    class_attribute,
    is_a,
    members_of,
    pass_on_signal,
)
from benchmodels.identity.signatures import Signature, dtype_name, key_text, layout_of, simple_text, tensor_text
from benchmodels.identity.source_text import function_text, is_own, names_this_machine
from benchmodels.identity.user_code import OwnCode, code_of, code_of_class, is_own_object, replaced_in
from benchmodels.pytorch.module_parts import children_of, own_tensors
from benchmodels.pytorch.unrecorded import shape_of
from benchmodels.types import Details, Module, Value

LENGTH = 16
COMPILED = "torch._dynamo.eval_frame.OptimizedModule"
MAX_VALUES = 4096  # of a list that is a setting
CALLED = (types.FunctionType, types.MethodType, functools.partial)
ATTENTION = "_attn_implementation"
# Read from the configuration during a call, by decorators of `forward` or by functions it calls.
CONFIGURED = frozenset(
    (
        *(ATTENTION, "output_attentions", "output_hidden_states", "return_dict", "use_cache"),
        *("num_experts_per_tok", "sliding_window", "attn_logit_softcapping", "final_logit_softcapping"),
    )
)
NOT_SETTINGS = frozenset(("training", "name_or_path"))
# Prefixes of attributes that libraries add to a module as it is used.
LIBRARY_MARKS = ("__", "_is_", "_torchdynamo", "_dynamo", "_compiled", "_fsdp", "_ddp", "_hf_")


def identity_of(structure: str, signature: Signature) -> str:
    """The identity of a model of this structure, called with such inputs."""
    return _digest([structure, signature.canonical()])


def structure_of(module: Module) -> str:
    """The hash of everything but the inputs."""
    parts: List[Any] = []
    codes: Dict[type, OwnCode] = {}
    classes: List[Tuple[str, List[List[str]]]] = []
    tensors: Dict[int, Tuple[str, Any]] = {}
    modules: Dict[int, str] = {}
    configs: Dict[int, Details] = {}
    for path, part in _parts(module):
        if id(part) in modules:
            parts.append([path, "same", modules[id(part)]])
            continue
        modules[id(part)] = path
        name, kind = class_name(part), type(part)
        if kind not in codes:
            codes[kind] = code_of_class(kind, ("forward", "__call__"))
            named = (name, codes[kind].texts)
            if (is_own(kind) or codes[kind].texts) and named not in classes:
                classes.append(named)
        asked = codes[kind].attributes
        optional = (code_of(_callables_of(part)).texts, _configured(part, asked, configs))
        more = [text for text in optional if text]
        parts.append([path, name, settings_of(part, asked), _tensors_of(part, path, tensors), *more])
    return _digest([parts, sorted(classes), *_replaced()])


def _callables_of(module: Module) -> List[Any]:
    """Callables added to this one module: functions, hooks, another `forward`."""
    own = attributes_of(module)
    tables = [own.get(name) for name in ("_forward_pre_hooks", "_forward_hooks")]
    hooks = [hook for table in tables if is_a(table, dict) for _, hook in members_of(table)]
    values = [value for name, value in own.items() if not _is_compiled_forward(module, name, value)]
    return [value for value in (*values, *hooks) if _may_be_own(value)]


def _may_be_own(value: Value) -> bool:
    """A quick test, since modules have many attributes."""
    if is_a(value, CALLED):
        return True
    return type(value).__module__.partition(".")[0] not in ("builtins", "collections", "torch")


def _is_compiled_forward(module: Module, name: str, value: Value) -> bool:
    """`net.forward = torch.compile(net.forward)` leaves the model the same."""
    inner: Any = attribute(value, "_torchdynamo_orig_callable") if name == "forward" else None
    return is_a(inner, types.MethodType) and inner.__func__ is class_attribute(type(module), "forward")


def _replaced() -> List[Any]:
    """Functions that the user has patched into torch itself."""
    places = [sys.modules[name] for name in ("torch", "torch.nn.functional") if name in sys.modules]
    texts = replaced_in([*places, *(place.Tensor for place in places[:1])]).texts
    return [texts] if texts else []


def _parts(module: Module) -> Iterator[Tuple[str, Any]]:
    """The module and its parts with their paths; a compiled part counts as the original."""
    waiting: List[Tuple[str, Any, FrozenSet[int]]] = [("", module, frozenset())]
    while waiting:
        path, part, above = waiting.pop()
        part = uncompiled(part)
        yield path, part
        inside = above | {id(part)}
        inner = [(name, each) for name, each in children_of(part).items() if id(each) not in inside]
        waiting += [(f"{path}.{name}" if path else str(name), each, inside) for name, each in reversed(inner)]


def uncompiled(module: Module) -> Any:
    """The module that `torch.compile` was given, if this is its result; else the module itself."""
    while python_name(module) == COMPILED and (inner := children_of(module).get("_orig_mod")) is not None:
        module = inner
    return module


def python_name(module: Module) -> str:
    """Module and qualified name of its class, as Python has them."""
    return f"{type(module).__module__}.{type(module).__qualname__}"


def class_name(module: Module) -> str:
    """Qualified; `__main__.…` for a class of the script, and `torch.nn.…` without the file it is defined in."""
    kind, place = type(module), type(module).__module__
    if place.startswith("torch.jit"):
        original = getattr(module, "original_name", None)  # of a class compiled by TorchScript
        if isinstance(original, str):
            return f"torch.jit.{original}"
    if place == "__mp_main__":
        place = "__main__"
    elif place.startswith("torch.nn.modules."):
        place = "torch.nn"
    return f"{place}.{kind.__qualname__}"


def settings_of(module: Module, asked: FrozenSet[str] = frozenset()) -> List[List[str]]:
    """The simple values a module is configured with. For torch's own classes: those their constructors take.

    `asked`: attributes that the module's code looks up; of an object that is a setting, only these count.
    """
    kind: Any = type(module)
    if kind.__module__.startswith("torch.jit"):
        return [["code", _code(module)]]
    own = is_own(kind)
    counts: Callable[[str], bool]
    if kind.__module__.startswith(("torch.nn.", "torch.ao.")):
        counts = _constructor_names(kind).__contains__
    elif own:
        base = _base_attributes(kind)
        counts = lambda name: name not in base and not name.startswith(LIBRARY_MARKS)  # noqa: E731
    else:
        counts = lambda name: not name.startswith("_")  # noqa: E731
    found: List[List[str]] = []
    for name, value in sorted(attributes_of(module).items()):
        if name in NOT_SETTINGS or not counts(name) or _is_compiled_forward(module, name, value):
            continue
        text = _setting_text(value, own, asked, 0)
        if text is not None:
            found.append([name, text])
    return [*found, ["code", _code(module)]] if kind.__module__.startswith("torch.fx") else found


def _setting_text(value: Value, own: bool, asked: FrozenSet[str], depth: int) -> Optional[str]:
    """None: not a setting. `own`: a class of the user's, where dictionaries and plain objects are looked into as well."""
    if is_a(value, str) and names_this_machine(value):
        return None
    if is_a(value, types.FunctionType) and own and is_own(value):
        return function_text(value) or value.__qualname__
    text = simple_text(value)
    if text is not None or depth > 3:
        return text
    if is_a(value, (list, tuple)):
        parts = [_setting_text(part, own, asked, depth + 1) for _, part in members_of(value)[:MAX_VALUES]]
        return None if None in parts else f"{len(members_of(value))}[{','.join(str(part) for part in parts)}]"
    if not own:
        return None
    inner: Dict[Any, Any]
    if is_a(value, functools.partial):
        inner = {"": value.func, "args": list(value.args), **value.keywords}
    elif is_a(value, dict):
        inner = dict(members_of(value))
    elif class_attribute(type(value), "__dataclass_fields__") is not ABSENT or is_a(value, types.SimpleNamespace):
        inner = attributes_of(value)
    elif is_own_object(value):
        inner = {name: part for name, part in attributes_of(value).items() if name in asked}
    else:
        return tensor_text(value)
    texts = [(key_text(key), _setting_text(part, own, asked, depth + 1)) for key, part in inner.items()]
    return json.dumps(sorted((key, part) for key, part in texts if part is not None))


def _configured(module: Module, asked: FrozenSet[str], configs: Dict[int, Details]) -> List[List[str]]:
    """Unusual values of a model's configuration that its calls are known to read (CONFIGURED) or the user's code asks for.

    Not what a library's code asks for: that changes with its version. The rest of a configuration shaped the model, and is
    mostly visible in it. `configs` caches the unusual values by the id of the configuration.
    """
    config = attribute(module, "config")
    if class_attribute(type(config), "to_diff_dict") is ABSENT:
        return []
    if id(config) not in configs:
        configs[id(config)] = _unusual(config)
    unusual = configs[id(config)]
    texts = [(name, simple_text(unusual[name])) for name in sorted(unusual.keys() & (asked | CONFIGURED))]
    return [[name, text] for name, text in texts if text is not None]


def _unusual(config: Any) -> Details:
    if is_own(type(config)):  # making a default one would run the program's code: count every value as unusual
        return attributes_of(config)
    try:
        usual: Dict[str, Any] = type(config)().to_dict()
        unusual = {name: value for name, value in config.to_dict().items() if usual.get(name, ABSENT) != value}
    except Exception as error:  # a class without defaults
        pass_on_signal(error)
        return {}
    unusual.pop("dtype", None)
    attention = getattr(config, ATTENTION, None)
    return unusual if attention in (None, "sdpa") else {**unusual, ATTENTION: attention}


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
    """Attributes that every module has, whatever its class."""
    base = next((one for one in kind.__mro__ if one.__module__ == "torch.nn.modules.module"), None)
    return _attributes_of_bare(base) if base is not None else frozenset()


@lru_cache(maxsize=10_000)
def _attributes_of_bare(base: type) -> FrozenSet[str]:
    return frozenset(vars(base())) | {"_compiled_call_impl"}


def _code(module: Module) -> str:
    """The code of a traced, scripted or exported graph."""
    try:
        return "".join(str(module.code).split())
    except Exception as error:  # a part without methods
        pass_on_signal(error)
        return ""


def _tensors_of(module: Module, path: str, seen: Dict[int, Tuple[str, Any]]) -> List[List[Any]]:
    """Names, shapes and dtypes of its own parameters and buffers; a shared tensor refers to its first name."""
    found: List[List[Any]] = []
    for kind in ("parameter", "buffer"):
        own = own_tensors(module, f"_{kind}s")
        for name in sorted(own, key=key_text):
            tensor = own[name]
            if id(tensor) in seen:
                found.append([kind, key_text(name), "same", seen[id(tensor)][0]])
                continue
            seen[id(tensor)] = (f"{path}.{name}", tensor)  # kept alive, so that no other tensor gets its id
            found.append([kind, key_text(name), list(shape_of(tensor)), dtype_name(tensor.dtype), *layout_of(tensor)])
    return found


def _digest(what: Any) -> str:
    text = json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

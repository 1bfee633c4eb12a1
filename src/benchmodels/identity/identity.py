"""Who a model is: a hash of its structure (classes, settings, shapes and dtypes, its own source) and of its inputs' signature.

The same in every process, on every machine and device, with and without gradients, trained or not; weights count only if that is asked for.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import sys
import types
from functools import lru_cache
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Tuple

from benchmodels.hooks.looking import (
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
from benchmodels.pytorch.quietly import shape_of
from benchmodels.types import Details, Module, Value

LENGTH = 16
COMPILED = "torch._dynamo.eval_frame.OptimizedModule"
MAX_VALUES = 4096  # in a list that is a setting
CALLED = (types.FunctionType, types.MethodType, functools.partial)
ATTENTION = "_attn_implementation"
# Taken from the configuration by decorators around `forward`, or by what it calls.
CONFIGURED = frozenset(
    (
        *(ATTENTION, "output_attentions", "output_hidden_states", "return_dict", "use_cache"),
        *("num_experts_per_tok", "sliding_window", "attn_logit_softcapping", "final_logit_softcapping"),
    )
)
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


def structure_of(module: Module) -> str:
    """The hash of everything but the inputs."""
    parts: List[Any] = []
    codes: Dict[type, OwnCode] = {}
    classes: List[Tuple[str, List[List[str]]]] = []
    tensors: Dict[int, Tuple[str, Any]] = {}
    modules: Dict[int, str] = {}
    configs = Configs()
    for path, part in _parts(module):
        if id(part) in modules:
            parts.append([path, "same", modules[id(part)]])
            continue
        modules[id(part)] = path
        name, kind = class_name(part), type(part)
        if kind not in codes:
            codes[kind] = code_of_class(kind, ("forward", "__call__"))
            told = (name, codes[kind].texts)
            if (is_own(kind) or codes[kind].texts) and told not in classes:
                classes.append(told)
        settings = settings_of(part, codes[kind].attributes)
        more = [
            text for text in (code_of(_callables_of(part)).texts, configs.text_of(part, codes[kind].attributes)) if text
        ]
        parts.append([path, name, settings, _tensors_of(part, path, tensors), *more])
    return _digest([parts, sorted(classes), *_replaced()])


def _callables_of(module: Module) -> List[Any]:
    """What was put into this one module to be called: functions, hooks, another `forward`."""
    own = attributes_of(module)
    hooks = [hook for name in ("_forward_pre_hooks", "_forward_hooks") for _, hook in _members(own.get(name))]
    values = [value for name, value in own.items() if not _is_compiled_forward(module, name, value)]
    return [value for value in (*values, *hooks) if _may_be_own(value)]


def _members(value: Value) -> List[Tuple[Any, Any]]:
    return members_of(value) if is_a(value, dict) else []


def _may_be_own(value: Value) -> bool:
    """Quickly, since modules have many attributes."""
    if is_a(value, CALLED):
        return True
    return type(value).__module__.partition(".")[0] not in ("builtins", "collections", "torch")


def _is_compiled_forward(module: Module, name: str, value: Value) -> bool:
    """`net.forward = torch.compile(net.forward)`: the model is the same one."""
    inner: Any = attribute(value, "_torchdynamo_orig_callable") if name == "forward" else None
    return is_a(inner, types.MethodType) and inner.__func__ is class_attribute(type(module), "forward")


def _replaced() -> List[Any]:
    """What the user has put into torch itself."""
    names = ("torch", "torch.nn.functional")
    places = [sys.modules[name] for name in names if name in sys.modules]
    texts = replaced_in([*places, *(place.Tensor for place in places[:1])]).texts if places else []
    return [texts] if texts else []


def _parts(module: Module) -> Iterator[Tuple[str, Any]]:
    """The module and its parts with their paths; a part that was compiled counts as what it was before."""
    waiting: List[Tuple[str, Any, FrozenSet[int]]] = [("", module, frozenset())]
    while waiting:
        path, part, above = waiting.pop()
        part = uncompiled(part)
        yield path, part
        inside = above | {id(part)}
        inner = [(name, each) for name, each in children_of(part).items() if id(each) not in inside]
        waiting += [(f"{path}.{name}" if path else str(name), each, inside) for name, each in reversed(inner)]


def uncompiled(module: Module) -> Any:
    """What `torch.compile` was given, where this is what it gave back."""
    kind = type(module)
    while f"{kind.__module__}.{kind.__qualname__}" == COMPILED and children_of(module).get("_orig_mod") is not None:
        module = children_of(module)["_orig_mod"]
        kind = type(module)
    return module


def class_name(module: Module) -> str:
    """With its module; `__main__` for a class of the script, and torch.nn's own without the file they are in."""
    if type(module).__module__.startswith("torch.jit"):
        original = getattr(module, "original_name", None)  # of a class that TorchScript compiled
        if isinstance(original, str):
            return f"torch.jit.{original}"
    kind = type(module)
    place = kind.__module__
    if place == "__mp_main__":
        place = "__main__"
    elif place.startswith("torch.nn.modules."):
        place = "torch.nn"
    return f"{place}.{kind.__qualname__}"


def settings_of(module: Module, asked: FrozenSet[str] = frozenset()) -> List[List[str]]:
    """What a module was set to, as far as it is simple. Of torch's own classes: what their constructors take.

    `asked`: what its code asks of objects; of those that are settings, only that counts.
    """
    kind: Any = type(module)
    if kind.__module__.startswith("torch.jit"):
        return [["code", _code(module)]]
    values = {name: value for name, value in attributes_of(module).items() if name not in NOT_SETTINGS}
    if kind.__module__.startswith(("torch.nn.", "torch.ao.")):
        values = {name: value for name, value in values.items() if name in _constructor_names(kind)}
    elif not is_own(kind):
        values = {name: value for name, value in values.items() if not name.startswith("_")}
    else:
        base = _base_attributes(kind)
        values = {k: value for k, value in values.items() if k not in base and not k.startswith(MARKS_OF_LIBRARIES)}
    if _is_compiled_forward(module, "forward", values.get("forward")):
        del values["forward"]
    own = is_own(kind)
    texts = ((name, _setting_text(values[name], own, asked, 0)) for name in sorted(values))
    code = [["code", _code(module)]] if kind.__module__.startswith("torch.fx") else []
    return [[name, text] for name, text in texts if text is not None] + code


def _setting_text(value: Value, own: bool, asked: FrozenSet[str], depth: int) -> Optional[str]:
    """None: not a setting. Of the user's own classes, what is inside of dictionaries and plain objects counts, too."""
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
    told = [(key_text(key), _setting_text(part, own, asked, depth + 1)) for key, part in inner.items()]
    return json.dumps(sorted((key, part) for key, part in told if part is not None))


class Configs:
    """What is known to be taken from a model's configuration as it runs, or is asked for by the user's own code, where it is not
    the usual value. Not what a library's code asks for: that is another thing in its next version.

    The rest of a configuration has made the model what it is, and is mostly seen in that.
    """

    def __init__(self) -> None:
        self._unusual: Dict[int, Dict[str, Any]] = {}

    def text_of(self, module: Module, asked: FrozenSet[str]) -> List[List[str]]:
        config = attribute(module, "config")
        if class_attribute(type(config), "to_diff_dict") is ABSENT:
            return []
        if id(config) not in self._unusual:
            self._unusual[id(config)] = self._read(config)
        unusual = self._unusual[id(config)]
        texts = [(name, simple_text(unusual[name])) for name in sorted(unusual.keys() & (asked | CONFIGURED))]
        return [[name, text] for name, text in texts if text is not None]

    @staticmethod
    def _read(config: Any) -> Details:
        if is_own(type(config)):  # to make another one would run the program's code: every value counts as unusual
            return attributes_of(config)
        try:
            usual: Dict[str, Any] = type(config)().to_dict()
            unusual = {name: value for name, value in config.to_dict().items() if usual.get(name, ABSENT) != value}
        except Exception as error:  # of a class that cannot say what is usual
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
    """What every module has in its dictionary, whatever its class."""
    base = next((one for one in kind.__mro__ if one.__module__ == "torch.nn.modules.module"), None)
    return _attributes_of_bare(base) if base is not None else frozenset()


@lru_cache(maxsize=10_000)
def _attributes_of_bare(base: type) -> FrozenSet[str]:
    return frozenset(vars(base())) | {"_compiled_call_impl"}


def _code(module: Module) -> str:
    """Of a graph that was traced, scripted or exported."""
    try:
        return "".join(str(module.code).split())
    except Exception as error:  # a part that has no method of its own
        pass_on_signal(error)
        return ""


def _tensors_of(module: Module, path: str, seen: Dict[int, Tuple[str, Any]]) -> List[List[Any]]:
    """Names, shapes and dtypes of its own parameters and buffers; one that was there before is told by its first name."""
    found: List[List[Any]] = []
    for kind in ("parameter", "buffer"):
        own = own_tensors(module, f"_{kind}s")
        for name in sorted(own, key=key_text):
            tensor = own[name]
            if id(tensor) in seen:
                found.append([kind, key_text(name), "same", seen[id(tensor)][0]])
                continue
            seen[id(tensor)] = (f"{path}.{name}", tensor)  # held, so that no other one gets its number
            found.append([kind, key_text(name), list(shape_of(tensor)), dtype_name(tensor.dtype), *layout_of(tensor)])
    return found


def _digest(what: Any) -> str:
    text = json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

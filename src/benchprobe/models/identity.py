"""Who a model is: a hash of its structure (classes, settings, shapes and dtypes, its own source) and of its inputs' signature.

The same in every process, on every machine and device, with and without gradients, trained or not; weights count only if that is asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import sys
import types
from functools import lru_cache
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Tuple

from benchprobe.models.own_code import OwnCode, code_of, code_of_class, is_own_object, replaced_in
from benchprobe.models.signatures import Signature, dtype_name, layout_of, simple_text, tensor_text
from benchprobe.models.source_text import function_text, is_own, names_this_machine

LENGTH = 16
COMPILED = "torch._dynamo.eval_frame.OptimizedModule"
MAX_VALUES = 4096  # in a list that is a setting
CALLED = (types.FunctionType, types.MethodType, functools.partial)
_ABSENT: Any = object()
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


def structure_of(module: Any) -> str:
    """The hash of everything but the inputs."""
    parts: List[Any] = []
    codes: Dict[type, OwnCode] = {}
    classes: List[Tuple[str, List[List[str]]]] = []
    tensors: Dict[int, Tuple[str, Any]] = {}
    modules: Dict[int, str] = {}
    configs = Configs()
    for path, part in _parts(module, "", ()):
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


def _callables_of(module: Any) -> List[Any]:
    """What was put into this one module to be called: functions, hooks, another `forward`."""
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    values = [value for name, value in vars(module).items() if not _is_compiled_forward(module, name, value)]
    return [value for value in (*values, *hooks) if _may_be_own(value)]


def _may_be_own(value: Any) -> bool:
    """Quickly, since modules have many attributes."""
    if isinstance(value, CALLED):
        return True
    return type(value).__module__.partition(".")[0] not in ("builtins", "collections", "torch")


def _is_compiled_forward(module: Any, name: str, value: Any) -> bool:
    """`net.forward = torch.compile(net.forward)`: the model is the same one."""
    inner = getattr(value, "_torchdynamo_orig_callable", None) if name == "forward" else None
    return inner is not None and getattr(inner, "__func__", None) is getattr(type(module), "forward", _ABSENT)


def _replaced() -> List[Any]:
    """What the user has put into torch itself."""
    names = ("torch", "torch.nn.functional")
    places = [sys.modules[name] for name in names if name in sys.modules]
    texts = replaced_in([*places, *(place.Tensor for place in places[:1])]).texts if places else []
    return [texts] if texts else []


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


def settings_of(module: Any, asked: FrozenSet[str] = frozenset()) -> List[List[str]]:
    """What a module was set to, as far as it is simple. Of torch's own classes: what their constructors take.

    `asked`: what its code asks of objects; of those that are settings, only that counts.
    """
    kind: Any = type(module)
    if kind.__module__.startswith("torch.jit"):
        return [["code", _code(module)]]
    values = {name: value for name, value in vars(module).items() if name not in NOT_SETTINGS}
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


def _setting_text(value: Any, own: bool, asked: FrozenSet[str], depth: int) -> Optional[str]:
    """None: not a setting. Of the user's own classes, what is inside of dictionaries and plain objects counts, too."""
    if isinstance(value, str) and names_this_machine(value):
        return None
    if isinstance(value, types.FunctionType) and own and is_own(value):
        return function_text(value) or value.__qualname__
    text = simple_text(value)
    if text is not None or depth > 3:
        return text
    if isinstance(value, (list, tuple)):
        parts = [_setting_text(part, own, asked, depth + 1) for part in value[:MAX_VALUES]]
        return None if None in parts else f"{len(value)}[{','.join(str(part) for part in parts)}]"
    if not own:
        return None
    if isinstance(value, functools.partial):
        inner = {"": value.func, "args": list(value.args), **value.keywords}
    elif isinstance(value, dict):
        inner = value
    elif dataclasses.is_dataclass(value) or isinstance(value, types.SimpleNamespace):
        inner = vars(value)
    elif is_own_object(value):
        inner = {name: part for name, part in getattr(value, "__dict__", {}).items() if name in asked}
    else:
        return tensor_text(value)
    told = [(str(key), _setting_text(inner[key], own, asked, depth + 1)) for key in inner]
    return json.dumps(sorted((key, part) for key, part in told if part is not None))


class Configs:
    """What is known to be taken from a model's configuration as it runs, or is asked for by the user's own code, where it is not
    the usual value. Not what a library's code asks for: that is another thing in its next version.

    The rest of a configuration has made the model what it is, and is mostly seen in that.
    """

    def __init__(self) -> None:
        self._unusual: Dict[int, Dict[str, Any]] = {}

    def text_of(self, module: Any, asked: FrozenSet[str]) -> List[List[str]]:
        config = vars(module).get("config")
        if not hasattr(type(config), "to_diff_dict"):
            return []
        if id(config) not in self._unusual:
            self._unusual[id(config)] = self._read(config)
        unusual = self._unusual[id(config)]
        texts = [(name, simple_text(unusual[name])) for name in sorted(unusual.keys() & (asked | CONFIGURED))]
        return [[name, text] for name, text in texts if text is not None]

    @staticmethod
    def _read(config: Any) -> Dict[str, Any]:
        try:
            usual: Dict[str, Any] = type(config)().to_dict()
            unusual = {name: value for name, value in config.to_dict().items() if usual.get(name, _ABSENT) != value}
        except Exception:  # of a class that cannot say what is usual
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


def _code(module: Any) -> str:
    """Of a graph that was traced, scripted or exported."""
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
            found.append([kind, name, list(tensor.shape), dtype_name(tensor.dtype), *layout_of(tensor)])
    return found


def _digest(what: Any) -> str:
    text = json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

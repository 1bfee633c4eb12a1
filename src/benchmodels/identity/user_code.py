"""The user's code that a model's calls run, and the values it takes from outside the model: part of the identity.

Reason: two models of the same structure may compute different things, and a script edited between two runs must not be
compared with its earlier self, nor reuse its cached builds.

Limits: follows names, attributes, closures and wrappers, starting at `forward`, by the names in the bytecode; not what code
imports inside functions, builds at run time or reads from files. Stops after MAX_TEXTS functions.

Switch: BENCHMODELS_HASH_CODE=0 leaves all of it out: identities then depend on structure, settings and inputs only. Set it
to the same value in every process of a run.
"""

from __future__ import annotations

import argparse
import dis
import functools
import inspect
import os
import types
from functools import lru_cache
from typing import Any, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from benchmodels.discover.callers import is_library
from benchmodels.hooks.import_watch import attribute, attributes_of, is_a, members_of, pass_on_signal
from benchmodels.identity.signatures import key_text, simple_text, tensor_text
from benchmodels.identity.source_text import function_text, is_own, names_this_machine
from benchmodels.types import Details, Value

SWITCH = "BENCHMODELS_HASH_CODE"
MAX_TEXTS = 1000
MAX_VALUES = 4096  # in one list
MAX_DEPTH = 4
MAX_WRAPPERS = 20
RUN_BY_USE = ("__init__", "__new__", "__post_init__", "__call__", "__getitem__", "forward")  # of a class or object


class OwnCode(NamedTuple):
    """`texts`: sorted names and sources of functions, names and texts of values. `attributes`: names it looks up on objects."""

    texts: List[List[str]]
    attributes: FrozenSet[str]


class Names(NamedTuple):
    """Names that a function looks up in its module and on objects."""

    globals: FrozenSet[str]
    attributes: FrozenSet[str]


def code_of_class(owner: type, methods: Sequence[str]) -> OwnCode:
    """These methods and all user code they use: methods and attributes of the class; functions, classes and values of
    modules and closures. For an installed class: what the user has patched into it or its module."""
    walk = _Walk()
    for name in methods:
        for kind in owner.__mro__:
            function: Any = vars(kind).get(name)
            own = own_functions(function)
            walk.add(own, owner)
            if not own and is_a(function, types.FunctionType):
                walk.add_installed(kind, function)
    return walk.done()


def code_of(callables: Iterable[Any]) -> OwnCode:
    """The same for functions, methods, partials and callable objects, except installed ones."""
    walk = _Walk()
    for one in callables:
        inner = one.func if is_a(one, functools.partial) else one
        of = type(inner.__self__) if is_a(inner, types.MethodType) else object
        walk.add(own_functions(one), of)
        if is_own_object(one):
            walk.add(_methods(type(one), "__call__"), type(one))
    return walk.done()


def replaced_in(places: Sequence[Any]) -> OwnCode:
    """The user's functions patched into installed modules or classes."""
    walk = _Walk()
    for place in places:
        for value in list(vars(place).values()):
            if is_a(value, types.FunctionType) and is_own(value):
                walk.add([value], object)
    return walk.done()


def own_functions(value: Value) -> List[types.FunctionType]:
    """The user's functions inside methods, properties, partials, decorators and compilers, outermost first."""
    found: List[types.FunctionType] = []
    try:
        for _ in range(MAX_WRAPPERS):
            if is_a(value, types.FunctionType) and is_own(value):
                found.append(value)
            inner = _inside(value)
            if inner is None:
                break
            value = inner
    except Exception as error:  # inspecting a library's object may run anything
        pass_on_signal(error)
    return found


def is_own_object(value: Value) -> bool:
    """A plain object with attributes of the user's: an instance of their class, or a namespace of arguments."""
    if is_a(value, (type, types.ModuleType, types.FunctionType, types.MethodType)) or _is_torch_module(value):
        return False
    return is_a(value, (argparse.Namespace, types.SimpleNamespace)) or is_own(type(value))


def _is_torch_module(value: Value) -> bool:
    return attribute(value, "_modules") is not None


def constant_text(value: Value, depth: int = 0) -> Optional[str]:
    """A value that looks constant, as text. A list with floats does not: it may be a log of times."""
    if names_this_machine(value) or (value is None and not depth):
        return None
    text = simple_text(value) or tensor_text(value)
    if text is not None or depth > MAX_DEPTH:
        return text
    if type(value) not in (list, tuple, dict) or len(value) > MAX_VALUES:
        return None
    if type(value) is dict:
        return str(sorted((key_text(key), constant_text(part, depth + 1) or "") for key, part in members_of(value)))
    if type(value) is list and any(is_a(part, float) for part in value):
        return None
    return str([constant_text(part, depth + 1) for part in value])


@lru_cache(maxsize=10_000)
def names_used(code: types.CodeType) -> Names:
    """Of this code and the functions nested in it."""
    globals_: Set[str] = set()
    attributes: Set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            globals_.add(step.argval)
        elif step.opname.startswith("LOAD_") and step.opname.endswith(("ATTR", "METHOD")):
            attributes.add(step.argval)
    for constant in code.co_consts:
        if is_a(constant, types.CodeType):
            globals_ |= names_used(constant).globals
            attributes |= names_used(constant).attributes
    return Names(frozenset(globals_), frozenset(attributes))


class _Space(NamedTuple):
    """A module, class or object of the user's to look attributes up in. `of`: the class of `self` in its functions."""

    name: str
    holder: Any
    of: type
    has_constants: bool = True

    def values(self) -> Mapping[str, Any]:
        return dict(vars(self.holder)) if is_a(self.holder, type) else attributes_of(self.holder)


class _Spaces(List[_Space]):
    """Each holder once; may grow while it is iterated over."""

    def add(self, space: _Space) -> None:
        if not any(space.holder is one.holder for one in self):
            self.append(space)

    def add_class(self, owner: type) -> None:
        for kind in owner.__mro__[:-1]:
            self.add(_Space(f"{_module_name(kind)}.{kind.__qualname__}", kind, owner, is_own(kind)))


class _Walk:
    """Follows code from function to function; visits each once."""

    def __init__(self) -> None:
        self._texts: Set[Tuple[str, str]] = set()
        self._attributes: Set[str] = set()
        self._waiting: List[Tuple[types.FunctionType, type]] = []

    def add(self, functions: Sequence[types.FunctionType], of: type) -> None:
        """`of`: the class of `self` in them."""
        self._waiting += [(function, of) for function in functions]

    def add_installed(self, kind: type, function: types.FunctionType) -> None:
        """A method that is not the user's: its origin, if that is not its class, and the user's functions it calls."""
        if function.__module__ != kind.__module__:
            place = f"{kind.__module__}.{kind.__qualname__}.{function.__name__}"
            self._texts.add((place, f"{function.__module__}.{function.__qualname__}"))
        innermost = inspect.unwrap(function)
        if is_a(innermost, types.FunctionType):
            for name in sorted(names_used(innermost.__code__).globals):
                self.add(own_functions(innermost.__globals__.get(name)), object)

    def done(self) -> OwnCode:
        if os.environ.get(SWITCH) == "0":
            return OwnCode([], frozenset())
        while self._waiting and len(self._texts) < MAX_TEXTS:
            function, of = self._waiting.pop()
            named = (_name_of(function), _described(function))
            if named not in self._texts:
                self._texts.add(named)
                self._follow(function, of)
        return OwnCode(sorted([name, text] for name, text in self._texts), frozenset(self._attributes))

    def _follow(self, function: types.FunctionType, of: type) -> None:
        used = names_used(function.__code__)
        self._attributes |= used.attributes
        module, spaces = _module_name(function), _Spaces()
        known = {name: function.__globals__[name] for name in used.globals if name in function.__globals__}
        known.update(_closure(function))
        for name in sorted(known):
            self._take(f"{module}.{name}", known[name], of, spaces)
        spaces.add_class(of)
        for space in spaces:
            values = space.values()
            for name in sorted(used.attributes & values.keys()):
                self._take(f"{space.name}.{name}", values[name], space.of, spaces, space.has_constants)

    def _take(self, name: str, value: Value, of: type, spaces: _Spaces, constants: bool = True) -> None:
        functions = own_functions(value)
        if functions:
            self.add(functions, of)
        elif is_a(value, types.ModuleType):
            if _is_own_module(value):
                spaces.add(_Space(value.__name__, value, object))
        elif is_a(value, type):
            if is_own(value) and value not in of.__mro__:
                self._take_class(value, spaces)
        elif constants and name.rpartition(".")[2][:2] != "__":
            self._take_value(name, value, spaces)

    def _take_value(self, name: str, value: Value, spaces: _Spaces) -> None:
        text = constant_text(value)
        if text is not None:
            self._texts.add((name, text))
            if is_a(value, (dict, list, tuple)):
                self.add([function for _, part in members_of(value) for function in own_functions(part)], object)
        elif _is_torch_module(value) or is_own_object(value):
            if not _is_torch_module(value):
                spaces.add(_Space(name, value, type(value)))
            self._take_class(type(value), spaces)

    def _take_class(self, kind: type, spaces: _Spaces) -> None:
        """The code uses this class or an instance of it."""
        spaces.add_class(kind)
        self.add([function for word in RUN_BY_USE for function in _methods(kind, word)], kind)


def _inside(value: Value) -> Any:
    """The object inside a wrapper; None if this is not a wrapper."""
    if is_a(value, (staticmethod, classmethod, types.MethodType)):
        return value.__func__
    if is_a(value, property):
        return value.fget
    if is_a(value, (functools.partial, functools.cached_property)):
        return value.func
    if is_a(value, (type, types.ModuleType)):
        return None
    for name in ("__wrapped__", "_torchdynamo_inline"):  # the latter: compiled by TorchScript
        inner = attribute(value, name)
        if inner is not None and callable(inner):
            return inner
    return attributes_of(value).get("fn") if type(value).__module__.startswith("triton") else None


def _methods(owner: type, name: str) -> List[types.FunctionType]:
    """The user's functions of that name in a class and its bases."""
    return [function for kind in owner.__mro__ for function in own_functions(vars(kind).get(name))]


def _described(function: types.FunctionType) -> str:
    """Its source and the values in its closure."""
    text = function_text(function) or ""
    if function.__name__ == "<lambda>" and text.count("lambda") > 1:  # several on one line: tell them apart
        code = function.__code__
        constants = [repr(one) for one in code.co_consts if is_a(one, (bool, int, float, str))]
        text += f" {sorted(set(code.co_names))} {constants}"
    closed = [(name, constant_text(value)) for name, value in sorted(_closure(function).items())]
    return text + "".join(f" {name} = {value}" for name, value in closed if value is not None)


def _closure(function: types.FunctionType) -> Details:
    found: Details = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            if name != "__class__":
                found[name] = cell.cell_contents
        except ValueError:  # not set yet
            pass
    return found


def _is_own_module(module: types.ModuleType) -> bool:
    place = attribute(module, "__file__")
    if place is None:  # a folder without __init__.py
        place = next(iter(attribute(module, "__path__", ())), None)
    return type(place) is str and not is_library(place)


def _name_of(function: types.FunctionType) -> str:
    name = f"{_module_name(function)}.{function.__qualname__}"
    code = function.__code__.co_name  # differs if functools.wraps renamed it
    return name if code == function.__name__ else f"{name}@{code}"


def _module_name(value: Value) -> str:
    name = value.__module__ if is_a(value, (type, types.FunctionType)) else None
    return "__main__" if name == "__mp_main__" else name if type(name) is str else ""

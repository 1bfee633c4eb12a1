"""The user's own code that a model's calls run, and the values it takes from outside the model: part of its identity.

Reason: two models of the same structure may compute different things, and a script edited between two runs must not be
compared with, or built from the cache of, its earlier self.

Limits: follows names, attributes, closures and wrappers from `forward` on, by the bytecode's names; not what code imports
inside functions, builds at run time or reads from files. Gives up following after MAX_TEXTS functions.

Switch: BENCHMODELS_HASH_CODE=0 leaves all of it out of identities: models are then told apart by structure, settings and
inputs only. Set it for every process of a run alike.
"""

from __future__ import annotations

import argparse
import dis
import functools
import inspect
import os
import types
from functools import lru_cache
from typing import Any, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from benchmodels.discover.callers import is_library
from benchmodels.hooks.looking import attribute, attributes_of, is_a, members_of, pass_on_signal
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
    """`texts`: name and source of each function, name and text of each value, sorted. `attributes`: what it asks of objects."""

    texts: List[List[str]]
    attributes: FrozenSet[str]


class Names(NamedTuple):
    """What a function asks for, of its module and of objects."""

    globals: FrozenSet[str]
    attributes: FrozenSet[str]


def code_of_class(owner: type, methods: Sequence[str]) -> OwnCode:
    """These methods and whatever of the user's own they use: methods and attributes of the class, functions, classes and
    values of modules and closures. Of an installed class: what was put into it, or into its module, by somebody else."""
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
    """The same of functions, methods, partials and objects that are called; of those that are installed nothing."""
    walk = _Walk()
    for one in callables:
        inner = one.func if is_a(one, functools.partial) else one
        of = type(inner.__self__) if is_a(inner, types.MethodType) else object
        walk.add(own_functions(one), of)
        if is_own_object(one):
            walk.add(_methods(type(one), "__call__"), type(one))
    return walk.done()


def replaced_in(places: Sequence[Any]) -> OwnCode:
    """The user's own functions that are in modules or classes of somebody else."""
    walk = _Walk()
    for place in places:
        for value in list(vars(place).values()):
            if is_a(value, types.FunctionType) and is_own(value):
                walk.add([value], object)
    return walk.done()


def own_functions(value: Value) -> List[types.FunctionType]:
    """Those below methods, properties, partials, decorators and compilers, from the outside to the inside."""
    found: List[types.FunctionType] = []
    try:
        for _ in range(MAX_WRAPPERS):
            if is_a(value, types.FunctionType) and is_own(value):
                found.append(value)
            inner = _inside(value)
            if inner is None:
                break
            value = inner
    except Exception as error:  # a library's object may do anything when it is looked at
        pass_on_signal(error)
    return found


def is_own_object(value: Value) -> bool:
    """A plain object whose attributes are the user's: of a class of theirs, or a namespace of arguments."""
    if is_a(value, (type, types.ModuleType, types.FunctionType, types.MethodType)) or _is_torch_module(value):
        return False
    return is_a(value, (argparse.Namespace, types.SimpleNamespace)) or is_own(type(value))


def _is_torch_module(value: Value) -> bool:
    return attribute(value, "_modules") is not None


def constant_text(value: Value, depth: int = 0) -> Optional[str]:
    """A value that looks constant, as text. Not one is a list with fractions: it may be a log of times."""
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
    """Of the functions inside of it, too."""
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
    """Where attributes are looked up. `of`: the class of `self` in its functions."""

    name: str
    values: Mapping[str, Any]
    of: type
    has_constants: bool


class _Spaces:
    """Modules, classes and objects of the user's; more may be added while it is gone through."""

    def __init__(self) -> None:
        self._found: List[_Space] = []
        self._seen: List[Any] = []

    def add(self, name: str, holder: Any, of: type, has_constants: bool = True) -> None:
        if not any(holder is one for one in self._seen):
            self._seen.append(holder)
            values = dict(vars(holder)) if is_a(holder, type) else attributes_of(holder)
            self._found.append(_Space(name, values, of, has_constants))

    def add_class(self, owner: type) -> None:
        for kind in owner.__mro__[:-1]:
            self.add(f"{_module_name(kind)}.{kind.__qualname__}", kind, owner, is_own(kind))

    def __iter__(self) -> Iterator[_Space]:
        return iter(self._found)  # of a list: what is added meanwhile is reached


class _Walk:
    """Follows code from function to function; each is told once."""

    def __init__(self) -> None:
        self._texts: Set[Tuple[str, str]] = set()
        self._attributes: Set[str] = set()
        self._waiting: List[Tuple[types.FunctionType, type]] = []

    def add(self, functions: Sequence[types.FunctionType], of: type) -> None:
        """`of`: the class of `self` in them."""
        self._waiting += [(function, of) for function in functions]

    def add_installed(self, kind: type, function: types.FunctionType) -> None:
        """A method that is not the user's: where it comes from if not from its class, and what of the user's own it uses."""
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
            told = (_name_of(function), _described(function))
            if told not in self._texts:
                self._texts.add(told)
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
            for name in sorted(used.attributes & space.values.keys()):
                self._take(f"{space.name}.{name}", space.values[name], space.of, spaces, space.has_constants)

    def _take(self, name: str, value: Value, of: type, spaces: _Spaces, constants: bool = True) -> None:
        functions = own_functions(value)
        if functions:
            self.add(functions, of)
        elif is_a(value, types.ModuleType):
            if _is_own_module(value):
                spaces.add(value.__name__, value, object)
        elif is_a(value, type):
            if is_own(value) and value not in of.__mro__:
                self._take_object(value, value, spaces)
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
                spaces.add(name, value, type(value))
            self._take_object(value, type(value), spaces)

    def _take_object(self, value: Value, kind: type, spaces: _Spaces) -> None:
        """It is made or called somewhere in the code."""
        spaces.add_class(kind)
        self.add([function for word in RUN_BY_USE for function in _methods(kind, word)], kind)


def _inside(value: Value) -> Any:
    """What is below one wrapper; None: it is none."""
    if is_a(value, (staticmethod, classmethod, types.MethodType)):
        return value.__func__
    if is_a(value, property):
        return value.fget
    if is_a(value, (functools.partial, functools.cached_property)):
        return value.func
    if is_a(value, (type, types.ModuleType)):
        return None
    for name in ("__wrapped__", "_torchdynamo_inline"):  # of a function that TorchScript compiled
        inner = attribute(value, name)
        if inner is not None and callable(inner):
            return inner
    return attributes_of(value).get("fn") if type(value).__module__.startswith("triton") else None


def _methods(owner: type, name: str) -> List[types.FunctionType]:
    """The user's own functions of that name in a class and the classes it comes from."""
    return [function for kind in owner.__mro__ for function in own_functions(vars(kind).get(name))]


def _described(function: types.FunctionType) -> str:
    """Its source, and the values that it has from the function it was made in."""
    text = function_text(function) or ""
    if function.__name__ == "<lambda>" and text.count("lambda") > 1:  # the line does not tell which of them it is
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
        except ValueError:  # it has none yet
            pass
    return found


def _is_own_module(module: types.ModuleType) -> bool:
    place = attribute(module, "__file__")
    if place is None:  # a folder without __init__.py
        place = next(iter(attribute(module, "__path__", ())), None)
    return type(place) is str and not is_library(place)


def _name_of(function: types.FunctionType) -> str:
    name = f"{_module_name(function)}.{function.__qualname__}"
    code = function.__code__.co_name  # another one where it took the name of what it wraps
    return name if code == function.__name__ else f"{name}@{code}"


def _module_name(value: Value) -> str:
    name = value.__module__ if is_a(value, (type, types.FunctionType)) else None
    return "__main__" if name == "__mp_main__" else name if type(name) is str else ""

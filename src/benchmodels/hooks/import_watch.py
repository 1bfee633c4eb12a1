"""Inspects a program's objects without running any of the program's code.

Calls no property, `__getattr__`, `__iter__`, `__repr__`, `__eq__` or `__class__` of an object: reads attributes where Python
stores them, and containers with the methods of their builtin base class. So the object cannot notice, fail or recurse.
"""

from __future__ import annotations

import signal
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any, List, Set, Tuple, Union

from benchmodels.types import Details, Value

ABSENT: Any = object()
Kinds = Union[type, Tuple[type, ...]]
_PLAIN = (type(None), bool, int, float, str, bytes, type)  # Python itself writes these as text
_DICT_OF_CLASS = type.__dict__["__dict__"].__get__
_MRO_OF_CLASS = type.__dict__["__mro__"].__get__


def is_a(value: Value, kinds: Kinds) -> bool:
    """Like `isinstance`, but by the real class only: `isinstance` also reads the attribute `__class__`."""
    return issubclass(type(value), kinds)


def class_attribute(kind: type, name: str) -> Any:
    """The attribute as the class or one of its bases defines it; ABSENT if none does."""
    for owner in _MRO_OF_CLASS(kind):
        own = _DICT_OF_CLASS(owner)
        if name in own:
            return own[name]
    return ABSENT


def attributes_of(value: Value) -> Details:
    """The object's own attributes: its dictionary and its slots."""
    found: Details = {}
    for owner in _MRO_OF_CLASS(type(value)):
        for name, member in _DICT_OF_CLASS(owner).items():
            if type(member) is MemberDescriptorType and name not in found and name != "__dict__":
                try:
                    found[name] = member.__get__(value)
                except AttributeError:  # an empty slot
                    pass
    return {**found, **_dictionary(value)}


def attribute(value: Value, name: str, otherwise: Any = None) -> Any:
    """The object's own attribute, else the class's as defined there: a property stays a property."""
    own = _dictionary(value)
    if name in own:
        return own[name]
    found = class_attribute(type(value), name)
    if type(found) is MemberDescriptorType:
        return attributes_of(value).get(name, otherwise)
    return otherwise if found is ABSENT else found


def _dictionary(value: Value) -> Details:
    for owner in _MRO_OF_CLASS(type(value)):
        member = _DICT_OF_CLASS(owner).get("__dict__")
        if type(member) in (GetSetDescriptorType, MemberDescriptorType) and not is_a(value, type):
            found = member.__get__(value)
            return found if type(found) is dict else {}
    return {}


def members_of(value: Value) -> List[Tuple[Any, Any]]:
    """Keys and values of a dictionary, positions and values of a list or tuple; subclasses too."""
    if is_a(value, dict):
        return list(dict.items(value))
    if is_a(value, list):
        return list(enumerate(list.__iter__(value)))
    return list(enumerate(tuple.__iter__(value)))


def error_text(error: BaseException) -> str:
    """An exception as text, as Python prints it; without calling a `__str__` of the program's."""
    args = BaseException.args.__get__(error)  # type: ignore[attr-defined]
    own = class_attribute(type(error), "__str__")
    if type(own) is WrapperDescriptorType and all(type(one) in _PLAIN for one in args):
        text = own(error)
    else:
        text = next((one for one in args if type(one) is str), "")
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


def pass_on_signal(error: BaseException) -> None:
    """Re-raises an exception of the program's signal handler, which only by chance was raised inside our code."""
    codes = _codes_of_handlers()
    traceback = error.__traceback__
    while codes and traceback is not None:
        if traceback.tb_frame.f_code in codes:
            raise error
        traceback = traceback.tb_next


def _codes_of_handlers() -> Set[CodeType]:
    found: Set[CodeType] = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        called = handler if is_a(handler, (FunctionType, MethodType)) else class_attribute(type(handler), "__call__")
        function = called.__func__ if is_a(called, MethodType) else called
        if is_a(function, FunctionType):
            found.add(function.__code__)
    return found

"""Looks at a program's objects without running any of the program's code.

No property, `__getattr__`, `__iter__`, `__repr__`, `__eq__` or `__class__` of an object is asked: attributes are read where
Python keeps them, containers by the methods of the builtin class they come from. Whoever is looked at cannot notice,
cannot fail and cannot recurse.
"""

from __future__ import annotations

import signal
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType
from typing import Any, List, Set, Tuple, Union

from benchmodels.types import Details, Value

ABSENT: Any = object()
Kinds = Union[type, Tuple[type, ...]]
_DICT_OF_CLASS = type.__dict__["__dict__"].__get__
_MRO_OF_CLASS = type.__dict__["__mro__"].__get__


def is_a(value: Value, kinds: Kinds) -> bool:
    """As `isinstance`, by the object's real class: `isinstance` also asks for its attribute `__class__`."""
    return issubclass(type(value), kinds)


def class_attribute(kind: type, name: str) -> Any:
    """As the class or one that it comes from defines it; ABSENT if none does."""
    for owner in _MRO_OF_CLASS(kind):
        own = _DICT_OF_CLASS(owner)
        if name in own:
            return own[name]
    return ABSENT


def attributes_of(value: Value) -> Details:
    """What is kept in the object itself: its dictionary and its slots."""
    found: Details = {}
    for owner in _MRO_OF_CLASS(type(value)):
        for name, member in _DICT_OF_CLASS(owner).items():
            if type(member) is MemberDescriptorType and name not in found and name != "__dict__":
                try:
                    found[name] = member.__get__(value)
                except AttributeError:  # a slot that nothing was put into
                    pass
    return {**found, **_dictionary(value)}


def attribute(value: Value, name: str, otherwise: Any = None) -> Any:
    """One of those, else what the class has under that name, as it is defined there: a property stays a property."""
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
    """Keys and values of a dictionary, positions and values of a list or tuple, whatever class was made of those."""
    if is_a(value, dict):
        return list(dict.items(value))
    if is_a(value, list):
        return list(enumerate(list.__iter__(value)))
    return list(enumerate(tuple.__iter__(value)))


def error_text(error: BaseException) -> str:
    """Of an exception, in words, without its own `__str__`."""
    texts = [one for one in BaseException.args.__get__(error) if type(one) is str]  # type: ignore[attr-defined]
    return f"{type(error).__name__}: {texts[0]}"[:300] if texts else type(error).__name__


def pass_on_signal(error: BaseException) -> None:
    """Raises what the program's own handler of a signal has raised: that it met us, and not the program, was chance."""
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

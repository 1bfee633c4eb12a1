"""Code around the body of a function, in the function's own frame."""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from typing import Any

import pytest

from benchmodels.hooks.bytecode_patch import arguments_text, woven

LOG: list[Any] = []
AROUND = """
_note = GIVEN.note
_note("before")
try:
    BODY
finally:
    _note("after")
"""


def weave(function: Any) -> Any:
    code = woven(function, AROUND, {"note": LOG.append})
    assert code is not None
    function.__code__ = code
    LOG.clear()
    return function


def plain(x, *rest, scale=2, **more):
    """Its own words."""
    if x < 0:
        raise ValueError("negative")
    return [x * scale, rest, more, sys._getframe(1).f_code.co_name]


def of_closure(value):
    def inner(x):
        return x + value

    return inner


class Owner:
    def __init__(self):
        self.__hidden = 7

    def method(self, x, /, y, *, z=1):
        return super().__repr__()[:0], self.__hidden, x, y, z

    @staticmethod
    def decorated(x):
        return x

    def generator(self):
        yield 1


def test_the_body_runs_between_with_arguments_defaults_and_caller_as_before() -> None:
    before = (plain.__name__, plain.__doc__, inspect.signature(plain), plain.__defaults__)
    weave(plain)
    assert plain(3, 4, k=5) == [
        6,
        (4,),
        {"k": 5},
        "test_the_body_runs_between_with_arguments_defaults_and_caller_as_before",
    ]
    assert LOG == ["before", "after"]
    assert (plain.__name__, plain.__doc__, inspect.signature(plain), plain.__defaults__) == before
    assert inspect.getsource(plain).startswith("def plain(x")


def test_tracebacks_name_the_same_lines() -> None:
    def told() -> str:
        try:
            plain(-1)
        except ValueError:
            return traceback.format_exc()
        raise AssertionError

    first = told()
    weave(plain)
    assert told() == first
    assert LOG == ["before", "after"]


def test_closures_hidden_names_and_super_still_work() -> None:
    assert weave(of_closure(5))(1) == 6
    weave(Owner.method)
    assert Owner().method(1, y=2) == ("", 7, 1, 2, 1)
    assert LOG == ["before", "after"]


def test_what_cannot_be_woven_is_left_alone() -> None:
    assert woven(Owner.generator, AROUND, {"note": print}) is None
    assert woven(Owner.decorated, AROUND, {"note": print}) is None
    assert woven(lambda x: x, AROUND, {"note": print}) is None  # type: ignore[arg-type]
    made: dict[str, Any] = {}
    exec("def f(x): return x", made)
    assert woven(made["f"], AROUND, {"note": print}) is None


def test_nothing_is_warned_about_or_left_in_the_module() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weave(of_closure(1))
    assert not [name for name in globals() if "benchprobe:" in name or name == "_note"]
    assert isinstance(hash(weave(of_closure(2)).__code__), int)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (Owner.method, "self, (x, y, ), {'z': z, }"),
        (plain, "x, (*rest, ), {'scale': scale, **more}"),
        (lambda self: 0, "self, (), {}"),
        (lambda *args: 0, None),
    ],
)
def test_arguments_are_named_as_a_call_gives_them(function: Any, text: str | None) -> None:
    assert arguments_text(function) == text

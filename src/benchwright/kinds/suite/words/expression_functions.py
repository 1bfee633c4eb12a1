"""The functions of expressions, which take only what they are made for and stay bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

MOST_BITS = 256  # of a whole number
MOST_DIGITS = 20  # that `round` may be asked for

Function = Callable[..., Any]


def kind(value: Any) -> str:
    if value is None:
        return "None"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", tuple: "a list"}
    return kinds.get(type(value), "a map" if isinstance(value, Mapping) else "this")


def power(base: float, exponent: float) -> float:
    whole = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if whole and abs(exponent) * int(base).bit_length() > 2 * MOST_BITS:
        raise OverflowError("the number becomes too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("the root of a negative number")
    return float(result) if isinstance(result, float) else result


def _number(function: Function) -> Function:
    def checked(*values: Any) -> Any:
        for value in values:
            if not isinstance(value, (int, float)):
                raise TypeError(f"a number is needed, not {kind(value)}")
        return function(*values)

    return checked


def _rounded(value: float, digits: Any = 0) -> float:
    if not isinstance(digits, int) or abs(digits) > MOST_DIGITS:
        raise ValueError(f"round takes up to {MOST_DIGITS} digits")
    return round(value, digits) if digits else round(value)


def _chosen(function: Function) -> Function:
    """min and max: of numbers, or of one list of numbers."""

    def chosen(*values: Any) -> Any:
        listed = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
        if not listed:
            raise ValueError("of nothing")
        return _number(lambda *numbers: function(numbers))(*listed)

    return chosen


def _length(value: Any) -> int:
    if isinstance(value, (str, list, tuple, Mapping)):
        return len(value)
    raise TypeError(f"{kind(value)} has no length")


def _converted(to: type) -> Function:
    def convert(value: Any) -> Any:
        if not isinstance(value, (int, float, str)):
            raise TypeError(f"{kind(value)} is no number")
        return to(value)

    return convert


FUNCTIONS: dict[str, Function] = {
    "min": _chosen(min),
    "max": _chosen(max),
    "len": _length,
    "int": _converted(int),
    "float": _converted(float),
    "round": _number(_rounded),
    "abs": _number(abs),
    "ceil": _number(math.ceil),
    "floor": _number(math.floor),
}

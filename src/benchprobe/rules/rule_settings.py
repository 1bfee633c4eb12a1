"""Reading the settings of the warm-up and stop rules; what makes no sense is a ValueError that says what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def only_set(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings that have a value: None is the same as absent."""
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}: {settings!r} is not a table of settings; write for example {{'steps': 100}}")
    return {key: value for key, value in settings.items() if value is not None}


def refuse_others(given: Mapping[str, Any], where: str, known: Sequence[str]) -> None:
    """ValueError if a setting is not one of `known`."""
    for key in given:
        if key not in known:
            raise ValueError(f"{where}: '{key}' does not belong here; known are {', '.join(known) or 'no settings'}")


def whole(given: Mapping[str, Any], key: str, where: str, at_least: int = 1) -> int:
    """That setting as a whole number."""
    value = given[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ValueError(f"{where}: {key} is {value!r}; give a whole number, {at_least} or more")
    return value


def number(given: Mapping[str, Any], key: str, where: str, zero: bool = False) -> float:
    """That setting as a finite number above 0, or 0 itself where `zero` allows it."""
    value = given[key]
    wrong_kind = isinstance(value, bool) or not isinstance(value, (int, float))
    if wrong_kind or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{where}: {key} is {value!r}; give {'0 or a number above' if zero else 'a number above 0'}")
    return float(value)

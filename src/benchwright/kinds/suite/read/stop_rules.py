"""When a suite's benchmark has been measured enough: `stop` and `warmup`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import parse_duration
from benchwright.core.stop_rule import StopRule, Warmup, WrongRule

Rule = TypeVar("Rule", StopRule, Warmup)


class Wrong(Exception):
    """The value at `path` of an entry is invalid."""

    def __init__(self, path: tuple[object, ...], what: str, remedy: str | None) -> None:
        super().__init__(what)
        self.path = path
        self.what = what
        self.remedy = remedy


class LoopRules(msgspec.Struct, frozen=True):
    """How much to measure, and remarks on that."""

    stop: StopRule | None = None
    warmup: Warmup = Warmup()
    notes: tuple[str, ...] = ()


def seconds_of(value: Any, path: tuple[Any, ...]) -> float:
    """A duration: a number of seconds, or text such as 10m."""
    try:
        seconds = parse_duration(value) if isinstance(value, str) else float(value)
    except (InvalidInput, TypeError, ValueError, OverflowError):
        raise Wrong(path, f"{path[-1]} is '{value}', not a duration", "write 600 (seconds), 90s, 10m or 2h") from None
    if not 0 < seconds < float("inf"):
        raise Wrong(path, f"{path[-1]} is {value}, not a duration", "write 600 (seconds), 90s, 10m or 2h")
    return seconds


def whole_of(value: object, path: tuple[object, ...], least: int) -> int:
    """A number, written out or from a `${…}`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Wrong(path, f"{path[-1]} is '{value}', not a whole number", f"write {least} or more")
    return value


def parsed(parse: Callable[[object], Rule], value: object, at: tuple[object, ...]) -> Rule:
    """Parses `value`, which stands at `at` in the entry."""
    try:
        return parse(value)
    except WrongRule as error:
        raise Wrong(at if error.key is None else (*at, error.key), error.what, error.remedy) from None

"""When a suite's benchmark has been measured enough: `stop` and `warmup`, or voir's `stop`, `interval` and `skip`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.numbers.quantities import parse_duration
from benchwright.core.stop_rule import StopRule, Warmup, WrongRule, parse_stop_rule, parse_warmup

Rule = TypeVar("Rule", StopRule, Warmup)
_DEFAULT_INTERVAL = "1s"


class Wrong(Exception):
    """The value at `path` of an entry is invalid."""

    def __init__(self, path: tuple[object, ...], what: str, remedy: str | None) -> None:
        super().__init__(what)
        self.path = path
        self.what = what
        self.remedy = remedy


class LoopRules(msgspec.Struct, frozen=True):
    """How much to measure, and remarks on that."""

    stop: StopRule | None
    warmup: Warmup
    notes: tuple[str, ...] = ()


def loop_rules_of(entry: dict[str, Any]) -> LoopRules:
    """From the entry; its own `stop` and `warmup` win over those of voir. Raises Wrong."""
    options = (entry.get("voir") or {}).get("options") or {}
    observed = _of_voir(options)
    stop, warmup = entry.get("stop"), entry.get("warmup")
    return LoopRules(
        stop=observed.stop if stop is None else _parsed(parse_stop_rule, stop, ("stop",)),
        warmup=observed.warmup if warmup is None else _parsed(parse_warmup, warmup, ("warmup",)),
        notes=observed.notes if stop is None else (),
    )


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


def _of_voir(options: dict[str, Any]) -> LoopRules:
    at = ("voir", "options")
    given = options.get("interval")
    interval = _DEFAULT_INTERVAL if given is None else given
    in_steps = isinstance(interval, int | float) or str(interval).strip().isdecimal()
    each = whole_of(int(float(interval)), (*at, "interval"), 1) if in_steps else 1
    interval_s = 1.0 if in_steps else seconds_of(interval, (*at, "interval"))
    stop = options.get("stop")
    rule: StopRule | None = None
    notes: tuple[str, ...] = ()
    if isinstance(stop, dict):
        rule = _parsed(parse_stop_rule, stop, (*at, "stop"))
    elif stop is not None and whole_of(stop, (*at, "stop"), 0) > 0:
        rule = StopRule(steps=stop * each) if in_steps else StopRule(observations=stop, interval_s=interval_s)
        if in_steps:
            notes = (f"{stop} observations of {each} steps are measured as {stop * each} steps",)
    return LoopRules(rule, _skipped(options.get("skip"), each, interval_s, in_steps), notes)


def _skipped(skip: object, each: int, interval_s: float, in_steps: bool) -> Warmup:
    """voir skips a number of observations."""
    if skip is None:
        return Warmup()
    at = ("voir", "options", "skip")
    if isinstance(skip, bool) or not isinstance(skip, int | float) or not 0 <= skip < float("inf"):
        raise Wrong(at, f"skip is '{skip}', not a number of observations", "write 0 or more")
    if in_steps or skip == 0:
        return Warmup(steps=int(skip * each))
    return Warmup(seconds=skip * interval_s)


def _parsed(parse: Callable[[object], Rule], value: object, at: tuple[object, ...]) -> Rule:
    """What `parse` makes of `value`, which stands at `at` in the entry."""
    try:
        return parse(value)
    except WrongRule as error:
        raise Wrong(at if error.key is None else (*at, error.key), error.what, error.remedy) from None

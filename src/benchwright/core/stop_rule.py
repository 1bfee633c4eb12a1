"""Stop rules: when to stop measuring an instrumented loop. One parser for options, suites, tasks and the Python API.

The rules themselves run inside benchprobe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from benchwright.core.decision import Decision
from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import parse_duration, parse_percentage

_LAUNCHES: dict[str, dict[str, float]] = {
    "seconds": {"max_steps": 1000},
    "precision": {"min_steps": 6, "max_steps": 100, "max_seconds": 300.0},
}
VERDICT_S = 600.0  # `--repeat verdict`
_RULES = ("steps", "seconds", "observations", "precision")


class StopRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """At most one of `steps`, `seconds`, `precision` or `observations` is set; none: never before its own end.

    steps         exactly that many measured steps after warm-up
    seconds       measured time after warm-up
    precision     this process's own median known within ± that fraction, at least `min_steps` and at
                  most `max_steps` steps or `max_seconds` seconds
    observations  that many rates, each over `interval_s` seconds
    """

    steps: int | None = None
    seconds: float | None = None
    precision: float | None = None
    observations: int | None = None
    interval_s: float = 1.0
    min_steps: int = 30
    max_steps: int | None = None
    max_seconds: float | None = None


NEVER = StopRule()


class Warmup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The warm-up of a loop: given in `steps` or `seconds`, or detected if neither is set."""

    steps: int | None = None
    seconds: float | None = None
    max_seconds: float = 60.0  # a loop that never stabilises is measured from here on, with a note


class WrongRule(InvalidInput):
    """An invalid stop rule or warm-up. `key`: the wrong part of a map; None: the whole value."""

    def __init__(self, what: str, *, where: str, remedy: str | None, key: str | None = None) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.key = key


def parse_stop_rule(value: object, *, where: str = "--stop") -> StopRule:
    """`100` or `100steps`, `30s`, `1%`, `never`; or a map with one of steps, seconds, precision and observations (with `interval`)."""
    if isinstance(value, Mapping):
        return _stop_rule_of(value, where)
    word = _word(value)
    if word == "never":
        return NEVER
    if (steps := _steps(word)) is not None:
        return StopRule(steps=_at_least(steps, 1, None, where))
    if word.endswith("%"):
        return StopRule(precision=_fraction(word, None, where))
    try:
        return StopRule(seconds=_seconds(word, None, where))
    except InvalidInput:
        remedy = "write 100 (steps), 30s (seconds), 1% (precision) or never"
        raise WrongRule(f"'{value}' is not a stop rule", where=where, remedy=remedy) from None


def parse_repeat(value: object, *, where: str = "--repeat") -> int | StopRule | Decision:
    """How often to launch: `6`, `auto`, `1%` (until the interval is that narrow), `60s` (of launches), or `verdict` or
    `verdict:30m` (until a verdict is clear, or for that long)."""
    word = _word(value)
    kind, colon, limit = word.partition(":")
    if kind == "verdict":
        return Decision(budget_s=_seconds(limit, "the limit", where) if colon else VERDICT_S)
    if re.fullmatch(r"[0-9]{1,18}", word) and int(word):
        return int(word)
    try:
        rule = None if word[-1:].isdigit() else parse_stop_rule("2%" if word == "auto" else word)
    except WrongRule:
        rule = None
    if rule is None or rule.steps is not None:
        remedy = "write 6 (launches), auto, 1% (until the interval is that narrow), 60s (of launches) or verdict"
        raise WrongRule(f"'{value}' is not a number of launches", where=where, remedy=remedy)
    return msgspec.structs.replace(rule, **_LAUNCHES["seconds" if rule.precision is None else "precision"])


def parse_warmup(value: object, *, where: str = "--warmup") -> Warmup:
    """`auto`, `20` or `20steps`, `5s`; or a map with steps or seconds."""
    if isinstance(value, Mapping):
        key = _one_of(value, ("steps", "seconds"), where)
        if key == "steps":
            return Warmup(steps=_at_least(value[key], 0, key, where))
        return Warmup(seconds=_seconds(value[key], key, where))
    word = _word(value)
    if word == "auto":
        return Warmup()
    if (steps := _steps(word)) is not None:
        return Warmup(steps=steps)
    try:
        return Warmup(seconds=parse_duration(word))
    except InvalidInput:
        remedy = "write auto, 20 (steps) or 5s (seconds)"
        raise WrongRule(f"'{value}' is not a warm-up", where=where, remedy=remedy) from None


def _stop_rule_of(rules: Mapping[str, object], where: str) -> StopRule:
    key = _one_of(rules, _RULES, where)
    interval = rules.get("interval")
    if interval is not None and key != "observations":
        remedy = "only observations can"
        raise WrongRule(f"{key} cannot have an interval", where=where, remedy=remedy, key="interval")
    if key == "steps":
        return StopRule(steps=_at_least(rules[key], 1, key, where))
    if key == "seconds":
        return StopRule(seconds=_seconds(rules[key], key, where))
    if key == "precision":
        return StopRule(precision=_fraction(rules[key], key, where))
    each = StopRule().interval_s if interval is None else _seconds(interval, "interval", where)
    return StopRule(observations=_at_least(rules[key], 1, key, where), interval_s=each)


def _one_of(rules: Mapping[str, object], known: tuple[str, ...], where: str) -> str:
    given = [key for key in known if rules.get(key) is not None]
    if len(given) == 1:
        return given[0]
    what = f"{' and '.join(given)} exclude each other" if given else "the map is empty"
    raise WrongRule(what, where=where, remedy=f"give one of {', '.join(known)}")


def _word(value: object) -> str:
    return "" if isinstance(value, bool) or value is None else str(value).strip()


def _steps(word: str) -> int | None:
    match = re.fullmatch(r"(\d{1,18})\s*(?:steps?)?", word)
    return None if match is None else int(match[1])


def _at_least(value: object, least: int, key: str | None, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    what = f"{value} steps are too few" if key is None else f"{key} is '{value}', not a whole number"
    raise WrongRule(what, where=where, remedy=f"write {least} or more", key=key)


def _seconds(value: object, key: str | None, where: str) -> float:
    try:
        seconds = parse_duration(_word(value))
    except InvalidInput:
        seconds = 0.0
    if 0 < seconds < float("inf"):
        return seconds
    remedy = "write 600 (seconds), 90s, 10m or 2h"
    raise WrongRule(f"{key} is '{value}', not a duration", where=where, remedy=remedy, key=key)


def _fraction(value: object, key: str | None, where: str) -> float:
    if isinstance(value, float) and 0 < value < 1:
        return value
    try:
        return parse_percentage(_word(value))
    except InvalidInput as error:
        raise WrongRule(error.what, where=where, remedy="write 1% or 0.5%", key=key) from None


def probe_settings(stop: StopRule | None, warmup: Warmup, loop: str | None) -> dict[str, object]:
    """The part of benchprobe's configuration about when to stop."""
    settings: dict[str, object] = {"warmup": _given(warmup)}
    if stop is not None and stop != NEVER:
        settings["stop"] = _given(stop)
    if loop is not None:
        settings["loop"] = loop
    return settings


def _given(rule: StopRule | Warmup) -> dict[str, object]:
    """Only what is not the default. msgspec leaves out defaults by identity, so of a rule that was pickled for another process it
    would send a float that is equal to one, which benchprobe refuses beside another rule."""
    usual = msgspec.structs.asdict(type(rule)())
    return {name: value for name, value in msgspec.structs.asdict(rule).items() if value != usual[name]}

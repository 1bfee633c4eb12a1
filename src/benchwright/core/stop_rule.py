"""When an instrumented loop has been measured enough. The rules themselves run inside benchprobe."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.numbers.quantities import parse_duration, parse_percentage


class StopRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exactly one of `steps`, `seconds`, `precision` or `observations` is set.

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


class Warmup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of a loop's beginning is warm-up: given in `steps` or `seconds`, or detected (neither)."""

    steps: int | None = None
    seconds: float | None = None
    max_seconds: float = 60.0  # a loop that never settles is measured from here on, and said so


def parse_stop_rule(text: str) -> StopRule:
    """`100` or `100steps`, `30s`, `1%`."""
    word = text.strip()
    match = re.fullmatch(r"(\d+)\s*(?:steps?)?", word)
    if match:
        if int(match[1]) == 0:
            raise InvalidInput("a loop cannot be measured for 0 steps", where="--stop", remedy="give 1 or more")
        return StopRule(steps=int(match[1]))
    if word.endswith("%"):
        return StopRule(precision=parse_percentage(word, where="--stop"))
    try:
        return StopRule(seconds=parse_duration(word))
    except InvalidInput:
        raise InvalidInput(
            f"'{text}' is not a stop rule",
            where="--stop",
            remedy="write 100 (steps), 30s (seconds) or 1% (precise enough)",
        ) from None


def parse_warmup(text: str) -> Warmup:
    """`auto`, `20` or `20steps`, `5s`."""
    word = text.strip()
    if word == "auto":
        return Warmup()
    match = re.fullmatch(r"(\d+)\s*(?:steps?)?", word)
    if match:
        return Warmup(steps=int(match[1]))
    try:
        return Warmup(seconds=parse_duration(word))
    except InvalidInput:
        raise InvalidInput(
            f"'{text}' is not a warm-up", where="--warmup", remedy="write auto, 20 (steps) or 5s (seconds)"
        ) from None


def probe_settings(stop: StopRule | None, warmup: Warmup, loop: str | None) -> dict[str, Any]:
    """The part of benchprobe's configuration that says when to stop."""
    settings: dict[str, Any] = {"warmup": msgspec.to_builtins(warmup)}
    if stop is not None:
        settings["stop"] = msgspec.to_builtins(stop)
    if loop is not None:
        settings["loop"] = loop
    return settings

"""What the launcher asked for, read once from the environment variable `BENCHPROBE_CONFIG`."""

from __future__ import annotations

import os
import sys
from typing import Any, Mapping, NamedTuple, Optional

VARIABLE = "BENCHPROBE_CONFIG"


class Rendezvous(NamedTuple):
    """The processes that are measured together: their shared folder, how many they are, and which this is.

    `turn_s`: they do not run at the same time but take turns of that length.
    """

    folder: str
    size: int
    rank: int
    turn_s: Optional[float] = None


class Config(NamedTuple):
    """`stream` is an absolute path or `fd:N`. `loop` None: the first named "train", else the first one.

    `stop` and `warmup` are handed to `stop_rules` as they are.
    """

    stream: str
    stop: Optional[Mapping[str, Any]] = None
    warmup: Mapping[str, Any] = {}
    loop: Optional[str] = None
    barrier: Optional[Rendezvous] = None


def parse(text: str) -> Config:
    """The configuration in `text`; ValueError says what is wrong with it."""
    import json  # only a measured program pays for it

    raw = json.loads(text)
    if not isinstance(raw, dict) or not isinstance(raw.get("stream"), str) or not raw["stream"]:
        raise ValueError('it must be a JSON object with a "stream"')
    barrier = raw.get("barrier")
    try:
        met = None if barrier is None else _barrier(barrier)
    except (KeyError, TypeError) as error:
        raise ValueError('"barrier" needs a folder, a size and a rank') from error
    for key in ("stop", "warmup"):
        if not isinstance(raw.get(key), (dict, type(None))):
            raise ValueError(f'"{key}" must be an object')
    return Config(raw["stream"], raw.get("stop") or None, raw.get("warmup") or {}, raw.get("loop"), met)


def _barrier(raw: Mapping[str, Any]) -> Rendezvous:
    turn_s = raw.get("turn_s")
    length = None if turn_s is None else float(turn_s)
    return Rendezvous(str(raw["folder"]), int(raw["size"]), int(raw["rank"]), length)


def from_environment(environment: Mapping[str, str] = os.environ) -> Optional[Config]:
    """None when nothing was asked for: then the probe is inert.

    A configuration that cannot be read must not break the program either: it is told on stderr, once.
    """
    text = environment.get(VARIABLE)
    if not text:
        return None
    try:
        return parse(text)
    except ValueError as error:
        print(f"benchprobe: {VARIABLE}: {error}; the program runs unmeasured", file=sys.stderr)
        return None

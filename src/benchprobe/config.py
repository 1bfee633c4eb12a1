"""The launcher's request, read once from the environment variable `BENCHPROBE_CONFIG`."""

from __future__ import annotations

import os
import sys
from typing import Any, Mapping, NamedTuple, Optional

VARIABLE = "BENCHPROBE_CONFIG"


class Rendezvous(NamedTuple):
    """Processes measured together: their shared folder, their number, and which one this is. `turn_s`: they take turns."""

    folder: str
    size: int
    rank: int
    turn_s: Optional[float] = None


class Config(NamedTuple):
    """`stream`: an absolute path or `fd:N`. `stop`, `warmup`: settings for `rules`. `loop`: the name of the loop that counts;
    None: the first named "train", else the first one."""

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
    barrier, met = raw.get("barrier"), None
    try:
        if barrier is not None:
            turn_s = None if barrier.get("turn_s") is None else float(barrier["turn_s"])
            met = Rendezvous(str(barrier["folder"]), int(barrier["size"]), int(barrier["rank"]), turn_s)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError('"barrier" needs a folder, a size and a rank') from error
    for key in ("stop", "warmup"):
        if not isinstance(raw.get(key), (dict, type(None))):
            raise ValueError(f'"{key}" must be an object')
    return Config(raw["stream"], raw.get("stop") or None, raw.get("warmup") or {}, raw.get("loop"), met)


def from_environment(environment: Mapping[str, str] = os.environ) -> Optional[Config]:
    """None if there is none: the probe is then inert. An invalid one does not break the program, but is reported on stderr."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    try:
        return parse(text)
    except ValueError as error:
        print(f"benchprobe: {VARIABLE}: {error}; the program runs unmeasured", file=sys.stderr)
        return None

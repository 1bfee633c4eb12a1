"""A Checkup: what a machine is, how noisy it is now, and what to do about each finding."""

from __future__ import annotations

from enum import Enum

import msgspec

from benchwright.core.machine import Machine
from benchwright.core.results.summary import Interval

Figure = float | int | str | bool | None


class State(str, Enum):
    """BAD: numbers measured now cannot be trusted. UNKNOWN: not reported by the system, which is no fault."""

    OK = "ok"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "unknown"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `name` is `topic.detail` and stays the same over versions."""

    name: str
    state: State
    text: str
    advice: str | None = None
    figures: dict[str, Figure] = {}

    @property
    def topic(self) -> str:
        return self.name.partition(".")[0]


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """What equal programs differ by: launches of one and the same program, compared as if they were two.

    All shares are fractions. `floor` is half the 95 % interval of the ratio of the two; `spread` the standard deviation
    between launches; `detectable` tells, for a number of alternating launches a side, which difference `compare` would call
    in four of five cases; empty if too few pairs tell how noisy the machine is.
    """

    metric: str
    median_s: float
    launches: int
    pairs: tuple[tuple[float, float], ...]  # seconds of neighbouring launches: the raw samples, in order
    ratio: float
    interval: Interval
    floor: float
    spread: float
    detectable: dict[int, float]


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """A Python and the model runtimes installed for it."""

    role: str  # "benchwright's own", "python of the PATH"
    executable: str
    version: str | None = None
    runtimes: dict[str, str] = {}  # name → version
    trouble: str | None = None


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    findings: tuple[Finding, ...]
    noise: tuple[Noise, ...] = ()  # empty if it was not measured
    interpreters: tuple[Interpreter, ...] = ()

    @property
    def bad(self) -> tuple[Finding, ...]:
        """Why numbers cannot be trusted now."""
        return tuple(f for f in self.findings if f.state is State.BAD)

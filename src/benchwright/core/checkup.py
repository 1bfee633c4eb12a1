"""A Checkup: what a machine is, how noisy it is now, and what to do about it."""

from __future__ import annotations

import msgspec

from benchwright.core.health import Health
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.summary import Interval


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How much launches of one program differ when compared as if they were two programs.

    All shares are fractions. `floor` is half the 95 % interval of the ratio of the two; `spread` the standard deviation
    between launches; `detectable` maps a number of alternating launches per side to the difference that `compare` would
    detect in four of five cases; empty with too few pairs to say.
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
    """A note's `kind` is `topic.detail` and stays the same across versions; besides `error` and `warning`, its severity
    may be `ok`, or `unknown` if the system does not report it."""

    machine: Machine
    health: Health
    notes: tuple[Note, ...]
    noise: tuple[Noise, ...] = ()  # empty if not measured
    interpreters: tuple[Interpreter, ...] = ()

    @property
    def errors(self) -> tuple[Note, ...]:
        """Why measurements made now cannot be trusted."""
        return tuple(note for note in self.notes if note.severity == "error")

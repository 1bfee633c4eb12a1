"""Reports of a program through a foreign instrument: rates, losses, accelerators, phases and errors.

A stream dialect fills it in. Numbers may be NaN.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import msgspec

from benchwright.core.note import Note

TRAIN = "train"
UNNAMED = "main"  # the task of data without one
# Of processes that are measured together: what lies between the first two counts, then the process runs on.
BEGIN, END, LEFT = "measure_begin", "measure_end", "measure_left"
_LONGEST_S = 1e9  # no program runs for thirty years
_CLOCK_SLACK_NS = 2_000_000_000  # a line's own time is trusted if it lies within the program's life
_MOST_ERRORS = 5


class Seen(NamedTuple):
    """A value and its time, in nanoseconds of the machine's monotonic clock."""

    t: int
    value: float


class GpuSeen(NamedTuple):
    t: int
    device: str
    values: dict[str, float]  # named as by our own sampler


class Reported(msgspec.Struct):
    """Everything reported so far, by one process or by all ranks together; `ranks` also keeps each rank apart."""

    dialect: str = ""  # the name of the one that reads it
    lines: int = 0
    unreadable: int = 0
    rates: dict[str, list[Seen]] = {}
    units: dict[str, str] = {}
    losses: dict[str, list[float]] = {}
    values: dict[tuple[str, str], list[float]] = {}
    gpus: list[GpuSeen] = []
    gpu_memory_bytes: dict[str, float] = {}  # capacity of each device
    memory_peaks: list[float] = []  # in bytes
    progress: dict[str, tuple[float, float]] = {}
    phases: dict[str, int] = {}  # start of each
    errors: list[str] = []
    late_errors: list[str] = []  # after the early stop, which may have caused them
    instrument_errors: list[str] = []
    stops: dict[str, int] = {}  # number of rates of each task at the early stop
    marks: dict[str, tuple[int, dict[str, int]]] = {}  # time, and number of rates of each task by then
    began: tuple[int, float] | None = None  # the program's start: monotonic and wall clock
    stopped: bool = False
    ranks: dict[int, Reported] = {}
    last_gpus: object = None  # the newest reading, for a dialect that repeats them

    def rank(self, number: int) -> Reported:
        """The reports of this rank."""
        return self.ranks.setdefault(number, Reported(dialect=self.dialect, began=self.began))

    def unread(self) -> None:
        """Counts a line that cannot be read."""
        self.lines += 1
        self.unreadable += 1

    def add_rate(self, task: str, seen: Seen, unit: str | None = None) -> None:
        self.rates.setdefault(task, []).append(seen)
        self.units.setdefault(task, unit or "items/s")

    def add_error(self, text: str) -> None:
        keep_error(self.late_errors if self.stopped else self.errors, text)

    def stop(self) -> None:
        """The program asks to be ended, having been measured enough."""
        if not self.stopped:
            self.stopped = True
            self.stops = self.counts()

    def counts(self) -> dict[str, int]:
        """The number of rates so far, by task."""
        return {task: len(seen) for task, seen in self.rates.items()}

    @property
    def wanted(self) -> int | None:
        """How many observations the program's own early stop waits for."""
        found = self.progress.get("early_stop")
        return int(found[1]) if found and found[1] >= 1 else None

    def time_of(self, said: object, seen_ns: int) -> int:
        """The program's own time, in seconds since 1970, if it gives a credible one; else when its line was seen."""
        if self.began is None or not is_number(said) or not abs(said - self.began[1]) < _LONGEST_S:
            return seen_ns
        t = self.began[0] + int((said - self.began[1]) * 1e9)
        return t if self.began[0] - _CLOCK_SLACK_NS <= t <= seen_ns + _CLOCK_SLACK_NS else seen_ns

    def notes(self) -> list[Note]:
        notes = [Note(text=f"{self.dialect}: {text}", severity="error") for text in self.errors]
        notes += [Note(text=f"{self.dialect}: {text}, after it had asked to stop") for text in self.late_errors]
        notes += [Note(text=f"{self.dialect}: an instrument failed: {text}") for text in self.instrument_errors]
        if self.unreadable:
            text = f"some lines of {self.dialect}'s stream could not be read and do not count"
            notes.append(Note(text=text, evidence=f"{self.unreadable} of {self.lines}"))
        return notes

    def facts(self) -> dict[str, object]:
        """Further facts to keep with the launch."""
        return {
            "dialect": self.dialect,
            "lines": self.lines,
            "early_stop": self.stopped or self._early_stop_reached,
            "progress": {task: list(steps) for task, steps in self.progress.items() if task != "early_stop"},
            "phases_ns": self.phases,
            "gpu_memory_bytes": self.gpu_memory_bytes,
            "errors": self.errors,
        }

    @property
    def _early_stop_reached(self) -> bool:
        found = self.progress.get("early_stop")
        return END in self.marks or (found is not None and found[0] > found[1])


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that a float can hold; NaN is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < 2**1023


def keep_error(errors: list[str], text: str) -> None:
    """Each once, and not too many."""
    text = " ".join(text.split())[:500]
    if text and text not in errors and len(errors) < _MOST_ERRORS:
        errors.append(text)

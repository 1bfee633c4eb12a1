"""Instrumented loops: the record of each, and which one counts."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import msgspec

from benchprobe.stream.events import given_values
from benchwright.core.note import Note
from benchwright.record.loops.steps import Steps
from benchwright.record.stream_file import Event

TRAIN = "train"  # the loop that counts by default
ITEMS = "items"
_LONGEST_UNIT = 24  # characters
WARMUP, MEASURED, AFTER = "warmup", "measured", "after"


LoopKey = tuple[int, str, int | None]  # process, name, and the number of a loop that counts or once did


class Given(msgspec.Struct):
    """Values a program gave, by phase."""

    measured: array[float] = msgspec.field(default_factory=lambda: array("d"))
    warmup: array[float] = msgspec.field(default_factory=lambda: array("d"))
    after: array[float] = msgspec.field(default_factory=lambda: array("d"))


class LoopObservations(msgspec.Struct):
    """Rates, each over the steps of one interval: the first of its steps among the measured ones, and their number."""

    interval_s: float
    spans: list[tuple[int, int]]


class LoopRecord(msgspec.Struct):
    """One loop of one process; a loop started again under the same name continues it."""

    process: int
    name: str
    key: LoopKey = (0, "", None)
    counts: bool = False
    rank: int | None = None
    on_device: bool = False
    device_stride: int = 1  # how many measured steps shared a device event, at most
    units: dict[str, None] = {}  # what the program calls its items
    phases: dict[str, Steps] = msgspec.field(default_factory=lambda: {p: Steps() for p in (WARMUP, MEASURED, AFTER)})
    given: dict[str, Given] = {}
    measure: Event | None = None
    stop: Event | None = None
    ends: list[str] = []
    stopped_ns: int | None = None  # when its rule ended it
    _newest: str = MEASURED

    @property
    def unit(self) -> str:
        """The unit of its items: a short word, and always the same; else just items."""
        return next(iter(self.units), ITEMS) if self.doubt_about_unit is None else ITEMS

    @property
    def doubt_about_unit(self) -> Note | None:
        if len(self.units) > 1:
            text = f"loop '{self.name}' counts {' and '.join(map(repr, self.units))} in one rate"
            return Note(text=text, remedy="give each unit a loop of its own")
        odd = [u for u in self.units if not u.isprintable() or not 0 < len(u) <= _LONGEST_UNIT]
        return Note(text=f"loop '{self.name}': unit {odd[0]!r:.40} is not a short word; ignored") if odd else None

    def add_steps(self, event: Event) -> None:
        phase = event.get("phase", MEASURED)
        steps = self.phases[phase]
        given = {name: _numbers(column, len(event["step_ns"])) for name, column in event.get("given", {}).items()}
        steps.add(event)
        self._newest = phase
        self.on_device = self.on_device or event.get("device_ns") is not None
        if phase == MEASURED:
            self.device_stride = max(self.device_stride, event.get("device_stride", 1))
        for name, numbers in given.items():
            getattr(self.given.setdefault(name, Given()), phase).extend(numbers)

    def break_off(self) -> None:
        """The newest step does not count: it was left at its start, with items but no time."""
        self.phases[self._newest].drop_last()

    def cut(self, t_ns: int) -> None:
        """Steps that ended after that time do not count: they ran around a loop that had been ended."""
        measured = self.phases[MEASURED]
        count = measured.until(t_ns)
        if count < len(measured):
            self.phases[AFTER] = measured.part(count)
            self.phases[MEASURED] = measured.part(0, count)
            if count == 0:
                self.phases[MEASURED].first_ns = None

    @property
    def observations(self) -> LoopObservations | None:
        """How its measured steps are divided, if it was measured by observations."""
        detail = (self.stop or {}).get("detail") or {}
        if "observations" not in detail:
            return None
        return LoopObservations(detail["interval_s"], [(o["first"], o["steps"]) for o in detail["observations"]])

    @property
    def all_steps(self) -> int:
        return sum(map(len, self.phases.values()))


def _numbers(column: list[object], steps: int) -> array[float]:
    _, values = given_values(column, steps)
    if isinstance(values, array):
        return values
    return array("d", [float(v) for v in values if isinstance(v, int | float)])


def settled(record: LoopRecord) -> tuple[Steps, Steps, Note | None]:
    """Measured steps, warm-up steps, and what a reader should know about the split.

    If a loop ended during warm-up, all steps but the first count, and the note says so.
    """
    measured, warmup = record.phases[MEASURED], record.phases[WARMUP]
    if len(measured) or len(warmup) < 2:
        capped = record.measure is not None and record.measure.get("warmup") == "cap"
        text = f"loop '{record.name}' had not stabilised when warm-up reached its limit"
        return measured, warmup, Note(text=text) if capped else None
    text = f"loop '{record.name}' finished during warm-up; all steps but the first were counted"
    return warmup.part(1), warmup.part(0, 1), Note(text=text, evidence=f"{len(warmup)} steps")


def counting_name(records: Sequence[LoopRecord], wanted: str | None) -> str | None:
    """The requested loop, else the first named "train", else the first; None if there is none."""
    names = [wanted] if wanted is not None else [r.name for r in records if r.counts]
    return TRAIN if TRAIN in names else names[0] if names else None


def counting_loops(records: Sequence[LoopRecord], wanted: str | None = None) -> list[LoopRecord]:
    """The loop that counts, for every rank; without ranks, that of the first process that has one.

    A data-loading worker that uses the probe is another process without a rank and must not count too.
    """
    name = counting_name(records, wanted)
    counting = [r for r in records if r.counts and r.name == name and r.all_steps]
    ranked: dict[int, LoopRecord] = {}
    for r in counting:
        # If a rank was restarted, the process that got furthest.
        if r.rank is not None and (r.rank not in ranked or r.all_steps > ranked[r.rank].all_steps):
            ranked[r.rank] = r
    return list(ranked.values()) if len(ranked) > 1 else counting[:1]

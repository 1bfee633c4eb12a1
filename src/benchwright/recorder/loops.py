"""What instrumented loops measured: from columns of steps to rates and step times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchprobe.events import given_values
from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction, guess_direction
from benchwright.domain.run import Note

Event = dict[str, Any]


@dataclass
class Steps:
    """Steps of one phase of a loop, as columns."""

    seconds: list[float] = field(default_factory=list)  # true time of each step: the device's where there is one
    waits: list[float] = field(default_factory=list)  # of it, waiting for data
    items: list[float | None] = field(default_factory=list)
    total_s: float = 0.0  # by the host's clock, from synchronisation to synchronisation
    first_ns: int | None = None
    last_ns: int = 0

    def add(self, event: Event) -> None:
        host: list[int] = event["step_ns"]
        device: list[int] | None = event.get("device_ns")
        self.seconds += [ns * 1e-9 for ns in (device if device is not None else host)]
        self.waits += [ns * 1e-9 for ns in event["wait_ns"]]
        items = event.get("items")
        self.items += items if isinstance(items, list) else [items] * len(host)
        whole_ns = event.get("window_ns", sum(host))
        self.total_s += whole_ns * 1e-9
        if self.first_ns is None:
            self.first_ns = event["t"]
        self.last_ns = event["t"] + whole_ns

    def without_first(self) -> Steps:
        """All but the first step, which carries one-time work."""
        return Steps(
            self.seconds[1:],
            self.waits[1:],
            self.items[1:],
            self.total_s - sum(self.seconds[:1]),
            self.first_ns,
            self.last_ns,
        )

    @property
    def counted_items(self) -> float | None:
        """Items in all, or None if any step's number is unknown."""
        known = [n for n in self.items if n is not None]
        return sum(known) if known and len(known) == len(self.items) else None


@dataclass
class Given:
    """Values a program gave, by phase."""

    measured: list[float] = field(default_factory=list)
    warmup: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


@dataclass
class Observations:
    """Each a rate over the steps of one interval: where its steps begin among the measured ones, and how many."""

    interval_s: float
    spans: list[tuple[int, int]]


@dataclass
class LoopRecord:
    """One loop of one process; a loop opened again under the same name goes on."""

    process: int
    name: str
    counts: bool = False
    rank: int | None = None
    on_device: bool = False
    phases: dict[str, Steps] = field(default_factory=lambda: {p: Steps() for p in ("warmup", "measured", "after")})
    given: dict[str, Given] = field(default_factory=dict)
    measure: Event | None = None
    stop: Event | None = None
    ends: list[str] = field(default_factory=list)

    def add_steps(self, event: Event) -> None:
        phase = event.get("phase", "measured")
        self.phases[phase].add(event)
        self.on_device = self.on_device or event.get("device_ns") is not None
        for name, column in event.get("given", {}).items():
            given = self.given.setdefault(name, Given())
            _, values = given_values(column, len(event["step_ns"]))
            numbers = [float(v) for v in values if isinstance(v, int | float)]
            getattr(given, phase).extend(numbers)

    @property
    def observations(self) -> Observations | None:
        """How its measured steps are divided, if it was measured by observations."""
        detail = (self.stop or {}).get("detail") or {}
        if "observations" not in detail:
            return None
        return Observations(detail["interval_s"], [(o["first"], o["steps"]) for o in detail["observations"]])

    @property
    def all_steps(self) -> int:
        return sum(len(steps.seconds) for steps in self.phases.values())


def settled(record: LoopRecord) -> tuple[Steps, Steps, Note | None]:
    """Measured steps, warm-up steps, and what a reader should know about the split.

    A loop that ended before its warm-up was seen to settle still tells something: all but its first step count, and the
    note says so.
    """
    measured, warmup = record.phases["measured"], record.phases["warmup"]
    if measured.seconds or len(warmup.seconds) < 2:
        capped = record.measure is not None and record.measure.get("warmup") == "cap"
        text = f"loop '{record.name}' was not seen settled when its warm-up was cut short"
        note = Note(text=text) if capped else None
        return measured, warmup, note
    count = len(warmup.seconds)
    text = f"loop '{record.name}' ended after {count} steps, before measuring began; all but the first count"
    first = Steps(warmup.seconds[:1], warmup.waits[:1], warmup.items[:1])
    return warmup.without_first(), first, Note(text=text)


def loop_measurements(record: LoopRecord, labels: dict[str, str]) -> tuple[list[Measurement], list[Note]]:
    """Rate, step time, waiting and throughput of a loop, and everything given inside it."""
    measured, warmup, note = settled(record)
    prefix = "" if record.counts else f"{record.name}."
    found: list[Measurement] = []
    notes = [note] if note else []
    if measured.seconds:
        found += _timings(measured, warmup, prefix, labels, record.observations)
        known = measured.counted_items
        if known is None and any(n is not None for n in measured.items):
            notes.append(
                Note(text=f"loop '{record.name}': the batch size of some steps is unknown, so rates count steps")
            )
    for name, given in record.given.items():
        samples, before = given.measured, given.warmup
        if not all(map(math.isfinite, given.after)):  # a loss that diverges after it was measured enough has diverged
            samples = samples + given.after
        if not measured.seconds or not record.phases["measured"].seconds:
            samples, before = given.warmup, []
        if samples or before:
            found.append(given_measurement(prefix + name, name, samples, before, labels))
    return found, notes


def _timings(
    measured: Steps, warmup: Steps, prefix: str, labels: dict[str, str], observations: Observations | None = None
) -> list[Measurement]:
    in_items = measured.counted_items is not None
    unit = "items/s" if in_items else "steps/s"
    items = measured.counted_items if in_items else float(len(measured.seconds))
    assert items is not None

    def rates(steps: Steps) -> tuple[float, ...]:
        counts: Sequence[float | None] = steps.items if in_items else [1.0] * len(steps.seconds)
        return tuple((n or 0.0) / s for n, s in zip(counts, steps.seconds, strict=True) if s > 0)

    def observed(steps: Steps, spans: Sequence[tuple[int, int]]) -> tuple[float, ...]:
        counts: Sequence[float | None] = steps.items if in_items else [1.0] * len(steps.seconds)
        sums = [(sum(n or 0.0 for n in counts[a : a + k]), sum(steps.seconds[a : a + k])) for a, k in spans]
        return tuple(n / s for n, s in sums if s > 0)

    if observations is None:
        rate, before = rates(measured), rates(warmup)
    else:
        rate = observed(measured, observations.spans)
        before = observed(warmup, _spans(warmup.seconds, observations.interval_s))

    def measurement(
        metric: str, unit: str, direction: Direction, samples: tuple[float, ...], warm: tuple[float, ...]
    ) -> Measurement:
        return Measurement(
            metric=prefix + metric,
            unit=unit,
            direction=direction,
            samples=samples,
            warmup_samples=warm,
            source="loop",
            labels=labels,
        )

    found = [
        measurement("rate", unit, Direction.HIGHER, rate, before),
        measurement("step_time", "s", Direction.LOWER, tuple(measured.seconds), tuple(warmup.seconds)),
        measurement("wait_time", "s", Direction.LOWER, tuple(measured.waits), tuple(warmup.waits)),
    ]
    if measured.total_s > 0:
        found.append(measurement("throughput", unit, Direction.HIGHER, (items / measured.total_s,), ()))
    return found


def _spans(seconds: Sequence[float], interval_s: float) -> list[tuple[int, int]]:
    """Steps divided as the rule divides the measured ones: a span ends with the step that fills its interval."""
    spans, first, passed = [], 0, 0.0
    for number, one in enumerate(seconds, start=1):
        passed += one
        if passed >= interval_s:
            spans.append((first, number - first))
            first, passed = number, 0.0
    return spans


_TIME_UNITS = {"ms": "ms", "us": "µs", "ns": "ns", "s": "s", "seconds": "s"}


def given_measurement(
    metric: str, name: str, samples: Sequence[float], before: Sequence[float] = (), labels: dict[str, str] | None = None
) -> Measurement:
    """What a program gave. A time (`ttft_ms`) is a distribution of its own; anything else is mostly a course, such as a
    loss, whose last value counts."""
    unit = _TIME_UNITS.get(name.rpartition("_")[2]) if "_" in name else None
    describes = "_per_item" in name  # of the workload: neither way is better
    return Measurement(
        metric=metric,
        unit=unit,
        direction=Direction.NEITHER if describes else Direction.LOWER if unit else guess_direction(name, None),
        samples=tuple(samples),
        warmup_samples=tuple(before),
        source="give",
        aggregate="median" if unit else "last",
        labels=labels or {},
    )


def counting_loops(records: Sequence[LoopRecord]) -> list[LoopRecord]:
    """The loop that counts, of every rank; without ranks, that of the first process that has one.

    A data-loading worker that happens to use the probe is another process without a rank and does not count twice.
    """
    counting = [r for r in records if r.counts and r.all_steps]
    ranked = [r for r in counting if r.rank is not None]
    if len({r.rank for r in ranked}) > 1:
        return ranked
    return counting[:1]

"""What the samplers saw: memory, CPU, accelerators, over the time of a job."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction
from benchwright.domain.run import Note

Event = dict[str, Any]


@dataclass(frozen=True)
class _Series:
    """How a sampler's value becomes a Measurement."""

    metric: str
    unit: str
    direction: Direction
    aggregate: str
    of_loop: bool = False  # what counts is while the loop was measured, not the program's start and end


_SERIES = {
    ("process", "rss_bytes"): _Series("memory.rss", "B", Direction.LOWER, "max"),
    ("process", "pss_bytes"): _Series("memory.pss", "B", Direction.LOWER, "max"),
    ("process", "cpu_percent"): _Series("cpu.use", "%", Direction.NEITHER, "average", of_loop=True),
    ("machine", "own_share"): _Series("cpu.own_share", "ratio", Direction.HIGHER, "average", of_loop=True),
    ("machine", "steal_percent"): _Series("cpu.steal", "%", Direction.LOWER, "average", of_loop=True),
    ("nvidia", "memory_bytes"): _Series("gpu.memory", "B", Direction.LOWER, "max"),
    ("nvidia", "load_percent"): _Series("gpu.load", "%", Direction.NEITHER, "average", of_loop=True),
    ("nvidia", "power_w"): _Series("gpu.power", "W", Direction.LOWER, "average", of_loop=True),
    ("nvidia", "sm_clock_mhz"): _Series("gpu.clock", "MHz", Direction.NEITHER, "median", of_loop=True),
    ("nvidia", "memory_clock_mhz"): _Series("gpu.memory_clock", "MHz", Direction.NEITHER, "median", of_loop=True),
    ("nvidia", "temperature_c"): _Series("gpu.temperature", "°C", Direction.NEITHER, "max"),
}
# Reasons a driver gives for a lower clock that say something is wrong, not merely idle (nvml.h).
_THROTTLED = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal limit",
    0x40: "hardware thermal limit",
    0x80: "power brake",
}
BUSY_SHARE = 0.97
SLEEPY_SHARE = 0.2


Span = tuple[int, int]  # from when to when, in nanoseconds


@dataclass
class Samples:
    """Collects `sample` events and condenses them at the end."""

    series: dict[tuple[str, str, str | None], list[tuple[int, float]]] = field(default_factory=dict)
    throttle: dict[str, int] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        device = event.get("device")
        label = None if device is None else str(device)
        for name, value in event.get("values", {}).items():
            if name == "throttle":
                self.throttle[label or ""] = self.throttle.get(label or "", 0) | int(value)
            elif isinstance(value, int | float):
                self.series.setdefault((event["sampler"], name, label), []).append((event["t"], float(value)))

    def measurements(self, measured: Span | None) -> list[Measurement]:
        """`measured`: when the loop that counts was measured, if there is one."""
        found = []
        for (sampler, name, device), points in self.series.items():
            how = _SERIES.get((sampler, name))
            if how is not None:
                before, inside = _split(points, measured if how.of_loop else None)
                found.append(_measurement(how, inside, device, before))
            elif name == "energy_j" and len(points) > 1:
                used = _Series("gpu.energy", "J", Direction.LOWER, "last")
                found.append(_measurement(used, (points[-1][1] - points[0][1],), device))
        return found

    def energy_j(self, measured: Span) -> float | None:
        """What all devices used in that time, between samples in proportion; None if it was not sampled from before to after."""
        used = []
        for (_, name, _), points in self.series.items():
            if name == "energy_j":
                if points[0][0] > measured[0] or points[-1][0] < measured[1]:
                    return None
                used.append(_at(points, measured[1]) - _at(points, measured[0]))
        return sum(used) if used else None

    def notes(self, measured: Span | None, cpu_share: float) -> list[Note]:
        """`cpu_share`: how much of a core the program used over its life."""
        notes = []
        _, shares = _split(self.series.get(("machine", "own_share", None), []), measured)
        if shares and cpu_share > SLEEPY_SHARE and (share := sum(shares) / len(shares)) < BUSY_SHARE:
            notes.append(Note(text="ran while the machine was busy", figure=f"own share of its cores {share:.2f}"))
        for device, mask in sorted(self.throttle.items()):
            reasons = [text for bit, text in _THROTTLED.items() if mask & bit]
            if reasons:
                notes.append(Note(text=f"GPU {device} lowered its clock: {', '.join(reasons)}"))
        return notes

    def peak_rss_bytes(self) -> float:
        return max((value for _, value in self.series.get(("process", "rss_bytes", None), [])), default=0.0)


def _at(points: list[tuple[int, float]], moment: int) -> float:
    """A counter's value at a moment between its first and its last point."""
    for (t0, v0), (t1, v1) in pairwise(points):
        if t0 <= moment <= t1:
            return v0 + (v1 - v0) * (moment - t0) / (t1 - t0) if t1 > t0 else v1
    return points[-1][1]


def _split(points: list[tuple[int, float]], span: Span | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Values before the span and inside it; all are inside where there is none, or nothing was sampled in it."""
    if span is not None:
        inside = tuple(value for t, value in points if span[0] <= t <= span[1])
        if inside:
            return tuple(value for t, value in points if t < span[0]), inside
    return (), tuple(value for _, value in points)


def _measurement(
    how: _Series, samples: tuple[float, ...], device: str | None, before: tuple[float, ...] = ()
) -> Measurement:
    return Measurement(
        metric=how.metric,
        unit=how.unit,
        direction=how.direction,
        samples=samples,
        warmup_samples=before,
        source="sampler",
        aggregate=how.aggregate,
        labels={} if device is None else {"device": device},
    )

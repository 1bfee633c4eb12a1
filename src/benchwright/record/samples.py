"""Readings of the samplers: memory, CPU, accelerators, over the time of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from statistics import median

import msgspec

from benchwright.core.conditions import OTHERS_PERCENT, scheduled, waiting_share
from benchwright.core.measurement import Measurement
from benchwright.core.metric import OURS, Direction, guess_direction
from benchwright.core.note import Note
from benchwright.core.summary import PEAK_PSS, PEAK_RSS
from benchwright.record.loops.steps import NS
from benchwright.record.stream_file import Event


class _Series(msgspec.Struct, frozen=True):
    """How a sampler's value becomes a Measurement."""

    metric: str
    unit: str | None
    direction: Direction
    aggregate: str
    of_loop: bool = False  # only samples taken while the loop was measured count


_SERIES = {
    ("process", "rss_bytes"): _Series("memory.rss", "B", Direction.LOWER, "max"),
    ("process", "pss_bytes"): _Series("memory.pss", "B", Direction.LOWER, "max"),
    ("process", "cpu_percent"): _Series("cpu.use", "%", Direction.NEITHER, "average", of_loop=True),
    ("machine", "own_share"): _Series("cpu.own_share", "ratio", Direction.HIGHER, "average", of_loop=True),
    ("machine", "steal_percent"): _Series("cpu.steal", "%", Direction.LOWER, "average", of_loop=True),
    ("machine", "others_percent"): _Series("cpu.others", "%", Direction.LOWER, "average", of_loop=True),
    ("machine", "idle_percent"): _Series("cpu.idle", "%", Direction.NEITHER, "average", of_loop=True),
}
GPU_SAMPLERS = ("nvidia", "amd", "intel")
_OF_GPUS = {
    "memory_bytes": _Series("gpu.memory", "B", Direction.LOWER, "max"),
    "load_percent": _Series("gpu.load", "%", Direction.NEITHER, "average", of_loop=True),
    "others_percent": _Series("gpu.others", "%", Direction.LOWER, "average", of_loop=True),
    "power_w": _Series("gpu.power", "W", Direction.LOWER, "average", of_loop=True),
    "power_limit_w": _Series("gpu.power_limit", "W", Direction.NEITHER, "median", of_loop=True),
    "sm_clock_mhz": _Series("gpu.clock", "MHz", Direction.NEITHER, "median", of_loop=True),
    "memory_clock_mhz": _Series("gpu.memory_clock", "MHz", Direction.NEITHER, "median", of_loop=True),
    "temperature_c": _Series("gpu.temperature", "°C", Direction.NEITHER, "max"),
}
_SERIES.update({(sampler, name): series for sampler in GPU_SAMPLERS for name, series in _OF_GPUS.items()})
# Counters of energy, by sampler and name.
OF_PACKAGES, OF_DEVICES = "package_j", "energy_j"
COUNTERS = {("rapl", OF_PACKAGES): "cpu.energy", **{(sampler, OF_DEVICES): "gpu.energy" for sampler in GPU_SAMPLERS}}
_OWN_SAMPLERS = {sampler for sampler, _ in _SERIES}
# How the names of a sampler's values end → their unit.
_UNITS = {
    "bytes": "B",
    "percent": "%",
    "ns": "ns",
    "us": "µs",
    "ms": "ms",
    "s": "s",
    "w": "W",
    "j": "J",
    "hz": "Hz",
    "mhz": "MHz",
    "c": "°C",
    "v": "V",
    "a": "A",
    "rpm": "rpm",
    "ratio": "ratio",
}
# Reasons for a lower clock that mean something is wrong, not merely idle (nvml.h).
_THROTTLED = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal limit",
    0x40: "hardware thermal limit",
    0x80: "power brake",
}
_POWER_CAP = 0x4  # the only one that is normal for a fully loaded GPU
BUSY_SHARE = 0.97
IDLE_PERCENT = 1.0  # of a GPU: less is nothing
_LATENCY_S = 0.001  # an idle core wakes up in less; other programs keep one for longer
NEAR_PEAK = 1.05  # PSS counts as a peak if RSS was within this factor of its own peak when PSS was read


_SAMPLES_IN_A_STRETCH = 2
# A stretch's energy is that between the samples inside it, if there are so many and they span this share of it.
_FEWEST_INSIDE, _SPANNED = 3, 0.6
_SEEN = 0.4  # the same for CPU and GPU time
Span = tuple[int, int]  # from when to when, in nanoseconds
Point = tuple[int, float]  # when, and what a sampler saw then


def united(spans: Iterable[Span]) -> list[Span]:
    """Their union, in order."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


class Samples(msgspec.Struct):
    """Collects `sample` events and condenses them at the end."""

    series: dict[tuple[str, str, str | None], list[Point]] = {}
    throttle: dict[str, list[tuple[int, int]]] = {}  # by device: when, and the driver's bits
    least_waited: float = 0.0  # the share of its time that at least its first thread waited for a core

    def add(self, event: Event) -> None:
        device = event.get("device")
        label = None if device is None else str(device)
        for name, value in event.get("values", {}).items():
            if name == "throttle":
                self.throttle.setdefault(label or "", []).append((event["t"], int(value)))
            elif isinstance(value, int | float):
                self.series.setdefault((event["sampler"], name, label), []).append((event["t"], float(value)))

    def ended(self, end: Event) -> None:
        """How much of the CPU time it wanted a launch got that was too short to be sampled: by what the kernel counted, if that
        is known of the launch as a whole. Part of its time is how long the supervisor waited to see its end."""
        usage, key = end.get("usage") or {}, ("machine", "own_share", None)
        if (first_s := usage.get("main_waited_s", 0.0)) >= _LATENCY_S and end.get("duration_s"):
            self.least_waited = min(1.0, first_s / end["duration_s"])
        whole = scheduled(usage, end.get("cpu_s"))
        if key in self.series or whole is None:
            return
        ran_s, waited_s, _ = whole
        rest_s = (end.get("duration_s") or 0.0) - ran_s - waited_s
        waited_s += max(0.0, min(rest_s, usage.get("noticed_late_s", 0.0)))
        share = ran_s / (ran_s + waited_s) if waited_s >= _LATENCY_S else 1.0
        self.series[key] = [(end["t"], round(share, 4))]

    def measurements(self, measured: Span | None) -> list[Measurement]:
        """`measured`: when the loop that counts was measured, if there is one."""
        found = []
        for (sampler, name, device), points in self.series.items():
            how = _SERIES.get((sampler, name)) if sampler in _OWN_SAMPLERS else _series_of_plugin(sampler, name)
            if (counter := COUNTERS.get((sampler, name))) is not None:
                if len(points) > 1:
                    used = _Series(counter, "J", Direction.LOWER, "last")
                    found.append(_measurement(used, (points[-1][1] - points[0][1],), device))
            elif how is not None:
                before, inside = _split(points, measured if how.of_loop else None)
                found.append(_measurement(how, inside, device, before))
        idle = _Series("gpu.idle_power", "W", Direction.LOWER, "last")
        return found + [_measurement(idle, (watts,), device) for device, watts in self.idle_w(measured).items()]

    def energy_j(self, stretches: Sequence[Span], counter: str = OF_DEVICES) -> float | None:
        """Energy of all devices in those stretches; None if it is not known of one of them."""
        counters = [points for (_, name, _), points in self.series.items() if name == counter]
        return _sum_of(_used_in(points, stretches) for points in counters)

    @property
    def counted_devices(self) -> set[str | None]:
        """Devices that have a counter of energy."""
        return {device for _, name, device in self.series if name == "energy_j"}

    def cpu_s(self, stretches: Sequence[Span], ended: tuple[int, float]) -> float | None:
        """CPU time of all processes in those stretches. `ended`: when they had ended, and what they had used in all."""
        points = self.series.get(("process", "cpu_s", None), [])
        return _seen_in([*(p for p in points if p[0] < ended[0]), ended], stretches) if points else None

    @property
    def most_processes(self) -> int:
        """The job's own, at any one time, as far as samples tell."""
        return int(max((count for _, count in self.series.get(("process", "processes", None), [])), default=1))

    def gpu_s(self, stretches: Sequence[Span] | None = None) -> float | None:
        """How long the devices were busy in those stretches, or in all, added up."""
        loads = [points for key, points in self.series.items() if key[0] in GPU_SAMPLERS and key[1] == "load_percent"]
        busy = [_busy_s(points) for points in loads if len(points) > 1]
        if stretches is None:
            return _sum_of(points[-1][1] for points in busy)
        return _sum_of(_seen_in(points, stretches) for points in busy)

    def notes(self, measured: Span | None, cpu_share: float) -> list[Note]:
        """`cpu_share`: how much of a core the program used over its lifetime."""
        notes = []
        figure = self._busy(measured, cpu_share)
        if figure is not None:
            notes.append(Note(text="ran while the machine was busy", evidence=figure, kind="busy"))
        notes += [note for device in sorted(self.throttle) if (note := self._lowered(device, measured)) is not None]
        return notes + self._shared(measured)

    def _lowered(self, device: str, measured: Span | None) -> Note | None:
        """Why the clock of a GPU was lowered, how often, and how far; None if it was not while the loop was measured."""
        _, seen = _split([(t, float(bits)) for t, bits in self.throttle[device]], measured)
        masks = [int(bits) & sum(_THROTTLED) for bits in seen]
        mask = reduce(or_, masks, 0)
        if not mask:
            return None
        reasons = [text for bit, text in _THROTTLED.items() if mask & bit]
        evidence = f"in {sum(map(bool, masks))} of {len(masks)} samples"
        clocks = self._of_gpu("sm_clock_mhz", device)
        _, inside = _split(clocks, measured)
        if inside:
            evidence += f", at {median(inside):,.0f} of {max(value for _, value in clocks):,.0f} MHz"
        kind = "throttled" if mask & ~_POWER_CAP else "power_cap"
        return Note(text=f"GPU {device} lowered its clock: {', '.join(reasons)}", evidence=evidence, kind=kind)

    def _of_gpu(self, name: str, device: str) -> list[Point]:
        return next((self.series[key] for s in GPU_SAMPLERS if (key := (s, name, device)) in self.series), [])

    def idle_w(self, measured: Span | None) -> dict[str, float]:
        """By device, its power while nothing ran on it, before the loop was measured; not known of one that was never idle."""
        found: dict[str, float] = {}
        for sampler, name, device in self.series:
            if sampler in GPU_SAMPLERS and name == "load_percent" and device is not None and measured is not None:
                idle = {t for t, load in self.series[sampler, name, device] if load <= IDLE_PERCENT and t < measured[0]}
                watts = [w for t, w in self._of_gpu("power_w", device) if t in idle]
                if watts:
                    found[device] = min(watts)
        return found

    def _shared(self, measured: Span | None) -> list[Note]:
        notes = []
        for (sampler, name, device), points in self.series.items():
            if sampler in GPU_SAMPLERS and name == "others_percent":
                _, shares = _split(points, measured)
                mean = sum(shares) / len(shares)
                if mean >= OTHERS_PERCENT:
                    text = f"another program also used GPU {device}"
                    notes.append(
                        Note(text=text, evidence=f"had it alone {100 - mean:2.0f} % of the time", kind="shared")
                    )
        return notes

    def memory_peaks(self, kernels_bytes: float | None) -> dict[str, float]:
        """By metric. The kernel's own maximum includes peaks between samples, but only of one process at a time.

        PSS is read less often; if it was not read near the peak, its peak is unknown and left out.
        """
        rss = dict(self.series.get(("process", "rss_bytes", None), []))
        pss = dict(self.series.get(("process", "pss_bytes", None), []))
        peak = max(*rss.values(), kernels_bytes or 0.0, 0.0)
        near = max((rss.get(t, 0.0) for t in pss), default=0.0)
        found = {PEAK_PSS: max(pss.values())} if pss and near * NEAR_PEAK >= peak else {}
        return found | ({PEAK_RSS: peak} if peak else {})

    def _busy(self, measured: Span | None, cpu_share: float) -> str | None:
        """How long the program itself waited for a core, in words; None if it hardly did, whatever ran beside it.

        If the CPU use of others and the limits of its control groups are known, threads of one program that wait for each
        other do not count.
        """
        share, others = self._mean("own_share", measured), self._mean("others_percent", measured)
        if share is None and others is None:
            return None  # it may have waited for processes of its own
        waited = self.least_waited if share is None else waiting_share(share, cpu_share)
        limited = bool(self._mean("quota_percent", measured))
        if waited <= 1 - BUSY_SHARE or (others is not None and others < OTHERS_PERCENT and not limited):
            return None
        if share is None:
            return f"waited for a core for at least {waited * 100:.0f} % of its time"
        return f"got {share * 100:.0f} % of the CPU time it wanted"

    def _mean(self, name: str, measured: Span | None) -> float | None:
        _, values = _split(self.series.get(("machine", name, None), []), measured)
        return sum(values) / len(values) if values else None


def _sum_of(found: Iterable[float | None]) -> float | None:
    """None if there is none, or one of them is not known."""
    known = list(found)
    return None if not known or None in known else sum(value for value in known if value is not None)


def _busy_s(points: Sequence[Point]) -> list[Point]:
    """A counter of busy seconds: a sample of the load holds for the time since the one before."""
    counter = [(points[0][0], 0.0)]
    for (before, _), (t, percent) in pairwise(points):
        counter.append((t, counter[-1][1] + percent / 100 * (t - before) * NS))
    return counter


def _seen_in(points: list[Point], stretches: Sequence[Span]) -> float | None:
    """Rise of a counter in those stretches, by the samples inside each alone: samples around them see other work.

    None if they span too little of one of them.
    """
    total = 0.0
    for begin, end in stretches:
        inside = [point for point in points if begin <= point[0] <= end]
        if not inside or inside[-1][0] - inside[0][0] <= _SEEN * (end - begin):
            return None
        (t0, v0), (t1, v1) = inside[0], inside[-1]
        total += (v1 - v0) * (end - begin) / (t1 - t0)
    return total


def _used_in(points: list[Point], stretches: Sequence[Span]) -> float | None:
    """Rise of a counter in those stretches.

    None if samples do not cover them, or are too rare to separate them from what is in between.
    """
    if not stretches or points[0][0] > stretches[0][0] or points[-1][0] < stretches[-1][1]:
        return None
    measured_ns = sum(end - begin for begin, end in stretches)
    every_ns = (points[-1][0] - points[0][0]) / max(1, len(points) - 1)
    if len(stretches) > 1 and measured_ns / len(stretches) < _SAMPLES_IN_A_STRETCH * every_ns:
        return None
    return sum(_used(points, stretch) for stretch in stretches)


def _used(points: list[Point], stretch: Span) -> float:
    """Rise of a counter in a stretch: its mean rise between the samples inside, if they span most of it.

    Else by interpolation, which takes the power just outside for the power at the edges: a GPU that has just stopped
    working would seem to have used less.
    """
    begin, end = stretch
    inside = [point for point in points if begin <= point[0] <= end]
    if len(inside) >= _FEWEST_INSIDE:
        (t0, v0), (t1, v1) = inside[0], inside[-1]
        if t1 - t0 >= _SPANNED * (end - begin):
            return (v1 - v0) * (end - begin) / (t1 - t0)
    return _at(points, end) - _at(points, begin)


def _at(points: list[Point], moment: int) -> float:
    """A counter's value at a moment between its first and last point."""
    for (t0, v0), (t1, v1) in pairwise(points):
        if t0 <= moment <= t1:
            return v0 + (v1 - v0) * (moment - t0) / (t1 - t0) if t1 > t0 else v1
    return points[-1][1]


def _split(points: list[Point], span: Span | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Values before and inside the span; without a span, or samples inside it, all count as inside."""
    if span is not None:
        inside = tuple(value for t, value in points if span[0] <= t <= span[1])
        if inside:
            return tuple(value for t, value in points if t < span[0]), inside
    return (), tuple(value for _, value in points)


def _series_of_plugin(sampler: str, name: str) -> _Series:
    """For a plug-in's sampler: `fan`, `speed_rpm` → `fan.speed` in rpm."""
    stem, _, suffix = name.rpartition("_")
    unit = _UNITS.get(suffix) if stem else None
    metric = f"{sampler}.{stem if unit else name}"
    if metric.startswith(OURS):
        metric = f"sampler.{metric}"  # must not look like one of our own measurements
    return _Series(metric, unit, guess_direction(stem or name, unit), "average", of_loop=True)


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

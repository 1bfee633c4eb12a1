"""From what another instrument reported to Measurements: which observations are warm-up, which count, and when they were taken."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from benchprobe.rules.steadiness import is_steady
from benchwright.core.benchmark import Benchmark
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.core.note import Note
from benchwright.core.reported import BEGIN, END, TRAIN, UNNAMED, Reported, Seen
from benchwright.record.loops.measurements import over_ranks
from benchwright.record.samples import Samples, Span

_FEWEST_TO_JUDGE = 8  # observations; of fewer only the first is warm-up
_CLEARLY = 0.25  # in squares: dropping more must halve the error of the mean; noise alone does not
_NOTEWORTHY = 0.03  # a smaller trend is not worth a note


class Observations(NamedTuple):
    """The rates of one task, in order. Those after the measured ones do not count."""

    warmup: list[Seen]
    measured: list[Seen]
    after: list[Seen]
    note: Note | None = None


class ReportedRates(NamedTuple):
    measurements: list[Measurement]
    notes: list[Note]
    span: Span | None  # when the observations that count were taken
    facts: dict[str, Any]


def reported_rates(record: Reported, benchmark: Benchmark, wanted: int | None = None) -> ReportedRates:
    """The launch's measurements: of each rank, and of all together if several reported rates.

    `wanted`: how many observations count, unless the program itself says so.
    """
    reporting = sum(1 for said in record.ranks.values() if said.rates)
    if reporting < 2:
        return _measured(record, benchmark, wanted)
    parts = {rank: _measured(said, benchmark, wanted) for rank, said in sorted(record.ranks.items())}
    found = [
        msgspec.structs.replace(m, labels=m.labels | {"rank": str(rank)})
        for rank, part in parts.items()
        for m in part.measurements
    ]
    spans = [part.span for part in parts.values() if part.span is not None]
    return ReportedRates(
        found + over_ranks(found, reporting),
        list(dict.fromkeys(note for part in parts.values() for note in part.notes)),
        (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None,
        next(part.facts for rank, part in parts.items() if record.ranks[rank].rates) | record.facts(),
    )


def _measured(record: Reported, benchmark: Benchmark, wanted: int | None) -> ReportedRates:
    """The task that counts is the one the benchmark names, else `train`, else the first."""
    task = counting_task(record, benchmark.loop)
    found: list[Measurement] = []
    notes: list[Note] = []
    span: Span | None = None
    facts = record.facts()
    for name, seen in record.rates.items():
        counts = name == task
        split = _split(record, name, seen, (record.wanted or wanted) if counts else None)
        found.append(_rate(record, name, split, "" if counts else f"{name}."))
        notes += [split.note] if counts and split.note else []
        if counts:
            span = _span(record, split)
            facts |= {"task": name, "observations": {p: len(getattr(split, p)) for p in split._fields[:3]}}
    for name, losses in record.losses.items():
        found.append(_given(_named(name, "loss", task), "loss", losses))
    for (name, key), values in record.values.items():
        found.append(_given(_named(name, key, task), key, values))
    if record.memory_peaks:
        found.append(
            Measurement(
                metric="gpu.memory_peak",
                unit="B",
                direction=Direction.LOWER,
                samples=tuple(record.memory_peaks),
                source=record.dialect,
                aggregate="max",
            )
        )
    return ReportedRates(found, notes, span, facts)


def counting_task(record: Reported, named: str | None) -> str | None:
    """None if no rate was reported."""
    candidates = [named, TRAIN, *record.rates]
    return next((task for task in candidates if task is not None and task in record.rates), None)


def add_gpu_samples(record: Reported, samples: Samples) -> None:
    """Its own readings of the accelerators, if our sampler found none."""
    if any(sampler == "nvidia" for sampler, _, _ in samples.series):
        return
    for seen in record.gpus:
        samples.add({"sampler": "nvidia", "device": seen.device, "t": seen.t, "values": seen.values})


def _split(record: Reported, task: str, seen: list[Seen], wanted: int | None) -> Observations:
    if BEGIN in record.marks and wanted is not None:
        first = record.marks[BEGIN][1].get(task, 0)
        last = record.marks[END][1].get(task, len(seen)) if END in record.marks else len(seen)
        return Observations(seen[:first], seen[first:last], seen[last:], _too_few(last - first, wanted))
    stopped_at = record.stops.get(task, len(seen)) if record.stopped else len(seen)
    after = seen[stopped_at:]
    points = [s for s in seen[:stopped_at] if math.isfinite(s.value) and s.value > 0]
    first = _warmup_length([s.value for s in points])
    if wanted is not None and len(points) >= wanted:
        first = min(first, len(points) - wanted)
    last = len(points) if wanted is None else min(len(points), first + wanted)
    note = _too_few(last - first, wanted)
    if note is None and wanted is None and _has_trend([s.value for s in points[first:last]]):
        note = Note(text=f"the rates of '{task}' had not stabilised")
    return Observations(points[:first], points[first:last], points[last:] + after, note)


def _too_few(count: int, wanted: int | None) -> Note | None:
    if wanted is None or count >= wanted:
        return None
    return Note(text=f"it ended after {count} of the {wanted} observations to be measured")


def _warmup_length(rates: Sequence[float]) -> int:
    """How many of the first observations are warm-up: at least one, which includes one-time work.

    The rest begins, within the first half, where its mean is known about best: the marginal standard error rule (White,
    An effective truncation heuristic for bias reduction in simulation output, Simulation 69(6), 1997).
    """
    if len(rates) < _FEWEST_TO_JUDGE:
        return min(1, max(0, len(rates) - 1))
    errors = {first: _squared_error(rates[first:]) for first in range(1, len(rates) // 2 + 1)}
    best = min(errors.values())
    return next(first for first, error in errors.items() if _CLEARLY * error <= best)


def _has_trend(rates: Sequence[float]) -> bool:
    if len(rates) < _FEWEST_TO_JUDGE or is_steady([round(1e12 / rate) for rate in rates], len(rates)):
        return False
    half = len(rates) // 2
    older, newer = statistics.median(rates[:half]), statistics.median(rates[half:])
    return abs(newer - older) > _NOTEWORTHY * older


def _squared_error(values: Sequence[float]) -> float:
    """The squared standard error of their mean."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values) ** 2


def _span(record: Reported, split: Observations) -> Span | None:
    """An observation covers the time since the one before."""
    if not split.measured:
        return None
    begin = split.warmup[-1].t if split.warmup else split.measured[0].t
    end = split.measured[-1].t
    if BEGIN in record.marks:
        begin, end = record.marks[BEGIN][0], record.marks[END][0] if END in record.marks else end
    return (begin, end) if end > begin else None


def _rate(record: Reported, task: str, split: Observations, prefix: str) -> Measurement:
    return Measurement(
        metric=f"{prefix}rate",
        unit=record.units.get(task),
        direction=Direction.HIGHER,
        samples=tuple(s.value for s in split.measured),
        warmup_samples=tuple(s.value for s in split.warmup),
        source="loop",
        aggregate="average",  # all cover the same time, so this is the delivered rate
        labels={"loop": task},  # as benchprobe calls it, so that the two can be compared
    )


def _named(task: str, key: str, counting: str | None) -> str:
    return key if task in (counting, TRAIN, UNNAMED) else f"{task}.{key}"


def _given(metric: str, name: str, values: list[float]) -> Measurement:
    return Measurement(
        metric=metric,
        unit=None,
        direction=guess_direction(name, None),
        samples=tuple(values),
        source="give",
        aggregate="last",
    )

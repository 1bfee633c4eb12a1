"""The measurements of a launch: from its log, its loops, given values, samples and its process."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.measurement import Measurement
from benchwright.core.metric import CPU_TIME, GPU_TIME, OURS, STEP_CPU, STEP_GPU, Direction, guess_direction
from benchwright.core.note import Note
from benchwright.core.summary import PEAK_RSS
from benchwright.record.fold import Fold
from benchwright.record.loops.loops import MEASURED, LoopRecord
from benchwright.record.loops.measurements import given_measurement, loop_measurements, over_ranks
from benchwright.record.loops.steps import NS, samples_of
from benchwright.record.notes import loop_choice_notes
from benchwright.record.reported_rates import ReportedRates
from benchwright.record.samples import Span, united

# A loop's own CPU time counts if no more than this passed beside its measured steps, between the two readings.
_BETWEEN, _MOST_BETWEEN_NS = 0.05, 5_000_000
_PREFIX = {"log": "log.", "give": "given."}  # for what a program reports about itself


def measurements_of(
    fold: Fold, benchmark: Benchmark, counting: list[LoopRecord], reported: ReportedRates, span: Span | None
) -> tuple[list[Measurement], list[Note]]:
    found: list[Measurement] = _log_measurements(fold, benchmark)
    notes: list[Note] = list(reported.notes)
    for record in sorted(fold.loops.values(), key=lambda r: r not in counting):
        if not record.all_steps:
            continue
        labels = _labels(record, counting, fold)
        prefix = "" if record in counting else f"{record.name}."
        more, remarks = loop_measurements(record, labels, prefix=prefix)
        found += more
        notes += remarks
    found += over_ranks(found, len({r.rank for r in fold.loops.values() if r.rank is not None}))
    notes += loop_choice_notes(fold, benchmark, counting)
    found += _given_outside_loops(fold)
    for m in reported.measurements:  # beside the rate of a loop that we measured ourselves
        found.append(
            msgspec.structs.replace(m, metric=f"{fold.reported.dialect}.rate") if counting and m.metric == "rate" else m
        )
    found += fold.gatherer.measurements()
    found += _energy(fold, counting, span) + _time_of_steps(fold, counting, span)
    return found + fold.samples.measurements(span) + _process_measurements(fold), notes


def _given_outside_loops(fold: Fold) -> list[Measurement]:
    """If several processes give the same value, the lowest rank's is the launch's; the others get a label."""
    found = []
    for name, by_process in fold.given.items():
        ranks = {process: fold.probes.get(process, {}).get("rank") for process in by_process}
        order = sorted(by_process, key=lambda process: (ranks[process] is None, ranks[process] or 0))
        for number, process in enumerate(order):
            apart = {"process": str(number)} if ranks[process] is None else {"rank": str(ranks[process])}
            found.append(given_measurement(name, name, by_process[process], labels=apart if number else {}))
    return found


def _labels(record: LoopRecord, counting: list[LoopRecord], fold: Fold) -> dict[str, str]:
    """Which loop it is, and of which rank or process if several have one of that name."""
    labels = {"loop": record.name}
    same = [r for r in fold.loops.values() if r.name == record.name and r.all_steps]
    if len(same) < 2:
        return labels
    if record in counting:
        return labels | {"rank": str(record.rank)} if len(counting) > 1 else labels
    if record.rank is not None and sum(1 for r in same if r.rank == record.rank) == 1:
        return labels | {"rank": str(record.rank)}
    return labels | {"process": str(same.index(record))}


def _energy(fold: Fold, counting: list[LoopRecord], span: Span | None) -> list[Measurement]:
    """Energy per item over all devices during the measured steps, without what ran between epochs."""
    items = [record.phases[MEASURED].items.total for record in counting]
    if span is None or not items or not all(items):
        return []
    stretches = united([s for record in counting for s in record.phases[MEASURED].stretches()])
    used = fold.samples.energy_j(stretches)
    if used is None:
        return []
    joules = {"energy.item": used}
    idle, devices = fold.samples.idle_w(span), fold.samples.counted_devices
    if idle and set(idle) == devices:
        at_rest = sum(idle.values()) * sum(end - begin for begin, end in stretches) * NS
        joules["energy.item_above_idle"] = max(0.0, used - at_rest)
    done = sum(n for n in items if n is not None)
    return [
        Measurement(metric=metric, unit="J", direction=Direction.LOWER, samples=(total / done,), source="sampler")
        for metric, total in joules.items()
    ]


def _time_of_steps(fold: Fold, counting: list[LoopRecord], span: Span | None) -> list[Measurement]:
    """CPU and GPU time of a measured step, in all processes and on all devices."""
    steps = max((len(record.phases[MEASURED]) for record in counting), default=0)
    end = fold.end or {}
    if span is None or not steps or end.get("cpu_s") is None or "t" not in end:
        return []
    stretches = united([s for record in counting for s in record.phases[MEASURED].stretches()])
    cpu_s = _own_cpu_s(fold, counting, stretches) or fold.samples.cpu_s(stretches, (end["t"], end["cpu_s"]))
    used = {STEP_CPU: cpu_s, STEP_GPU: fold.samples.gpu_s(stretches)}
    return [_of_process(metric, "s", total / steps) for metric, total in used.items() if total and total > 0]


def _own_cpu_s(fold: Fold, counting: list[LoopRecord], stretches: Sequence[Span]) -> float | None:
    """CPU time of measured steps by the process's own clock: exact, however short they were.

    None if other processes worked too, or if it did something else in between.
    """
    if len(counting) != 1 or fold.samples.most_processes > 1:
        return None
    began, stopped = counting[0].measure or {}, counting[0].stop or {}
    if began.get("cpu_ns") is None or stopped.get("cpu_ns") is None or not began.get("t") or not stopped.get("t"):
        return None
    measured_ns = sum(end - begin for begin, end in stretches)
    if stopped["t"] - began["t"] > (1 + _BETWEEN) * measured_ns + _MOST_BETWEEN_NS:
        return None
    return float(stopped["cpu_ns"] - began["cpu_ns"]) * NS


def _log_measurements(fold: Fold, benchmark: Benchmark) -> list[Measurement]:
    return [
        Measurement(
            metric=spec.name,
            unit=spec.unit,
            direction=spec.direction or guess_direction(spec.name, spec.unit),
            samples=samples_of(fold.log_values[spec.name]),
            source="log",
            aggregate=spec.aggregate,
        )
        for spec in benchmark.metrics
        if fold.log_values.get(spec.name)
    ]


def _process_measurements(fold: Fold) -> list[Measurement]:
    end = fold.end
    if end is None:
        return []

    # Of a warm start its imports are not in it, so it is not comparable with others.
    labels = {"start": "warm"} if fold.start.get("warm") else {}
    times = {
        # Of one that was started ahead, part of it was waiting for its turn.
        "process.duration": None if fold.start.get("ahead") else end.get("duration_s") or None,
        CPU_TIME: end.get("cpu_s"),
        GPU_TIME: fold.samples.gpu_s() or None,
    }
    found = [_of_process(metric, "s", value, labels) for metric, value in times.items() if value is not None]
    for metric, peak in fold.samples.memory_peaks(end.get("max_rss_bytes")).items():
        bound = metric == PEAK_RSS and end.get("max_rss_is_bound")
        found.append(_of_process(metric, "B", peak, {"bound": "upper"} if bound else {}))
    return found


def _of_process(metric: str, unit: str, value: float, labels: dict[str, str] | None = None) -> Measurement:
    return Measurement(
        metric=metric, unit=unit, direction=Direction.LOWER, samples=(value,), source="process", labels=labels or {}
    )


def without_clashes(found: Sequence[Measurement]) -> tuple[list[Measurement], list[Note]]:
    """Renames values that a program gave or printed under the name of a measured one; a note says so.

    Of a given and a printed value, the printed one keeps its name: it was asked for.
    """
    taken = {m.metric for m in found if m.source not in _PREFIX}
    printed = {m.metric for m in found if m.source == "log"}
    renamed: dict[str, str] = {}
    apart = []
    for m in found:
        clash = m.metric in taken or m.metric.startswith(OURS) or (m.source == "give" and m.metric in printed)
        if m.source in _PREFIX and clash:
            renamed[m.metric] = _PREFIX[m.source] + m.metric
            m = msgspec.structs.replace(m, metric=renamed[m.metric])
        apart.append(m)
    notes = [Note(text=f"the program's own '{old}' is shown as '{new}'") for old, new in renamed.items()]
    return apart, notes

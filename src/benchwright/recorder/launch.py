"""One job's events, folded into its Launch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from benchwright.domain.benchmark import Benchmark
from benchwright.domain.job import Job
from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction, guess_direction
from benchwright.domain.model import Model
from benchwright.domain.run import Launch, Note
from benchwright.domain.status import Status
from benchwright.domain.stop_rule import StopRule
from benchwright.domain.voir_record import LEFT
from benchwright.recorder.fold import Fold
from benchwright.recorder.loops import LoopRecord, counting_loops, given_measurement, loop_measurements
from benchwright.recorder.models import as_model_metrics, judge_model
from benchwright.recorder.ranks import over_ranks
from benchwright.recorder.reading import Event, read_events
from benchwright.recorder.samples import Span
from benchwright.recorder.turns import judge_turns, left_out, own_only, takes_turns
from benchwright.recorder.verdict import judge, log_notes
from benchwright.recorder.voir_rates import VoirMeasured, add_gpu_samples, measured_through_voir

_STOP_FACTS = ("rule", "steps", "detail", "by", "turn_s", "turns", "paused_ns")


def record_stream(path: str | Path, job: Job, benchmark: Benchmark) -> Launch:
    """The launch behind a stream file; a missing file is a job that left nothing."""
    try:
        return record_launch(read_events(path), job, benchmark)
    except (FileNotFoundError, IsADirectoryError):
        return record_launch((), job, benchmark)


def record_launch(events: Iterable[Event], job: Job, benchmark: Benchmark) -> Launch:
    """Fold `events` into measurements, notes and a verdict."""
    fold = Fold()
    for event in events:
        try:
            fold.add(event)
        except (KeyError, TypeError, ValueError, AttributeError):
            fold.unreadable += 1  # an event whose keys are not what this version writes
    add_gpu_samples(fold.voir, fold.samples)
    through_voir = measured_through_voir(fold.voir, benchmark)
    counting = counting_loops(list(fold.loops.values()))
    span = _measured_span(counting) or through_voir.span
    measurements, loop_notes = _measurements(fold, benchmark, through_voir, span)
    measurements = as_model_metrics(measurements, benchmark)
    if takes_turns(job):
        loop_notes += left_out(measurements)
        measurements = own_only(measurements)
    if seat := _seat(job):
        measurements = [msgspec.structs.replace(m, labels=seat | m.labels) for m in measurements]
    verdict = judge(benchmark, fold.end, fold.extraction, measurements, fold.voir, needs_rate=_speaks_voir(job))
    if verdict.status is Status.OK:
        verdict = judge_model(benchmark, fold.model, measurements) or verdict
    if verdict.status is Status.OK and takes_turns(job):
        verdict = judge_turns(counting) or verdict
    notes = (
        fold.notes
        + loop_notes
        + fold.voir.notes()
        + ([] if takes_turns(job) else fold.samples.notes(span, _cpu_share(fold.end)))
        + log_notes(fold.extraction, measurements)
        + _stream_notes(fold, benchmark, counting)
    )
    end = fold.end or {}
    return Launch(
        job=job.id,
        status=verdict.status,
        reason=verdict.reason,
        detail=verdict.detail,
        warmup=job.warmup,
        repeat=job.repeat,
        block=job.block,
        position=job.position,
        devices=job.devices,
        duration_s=end.get("duration_s"),
        exit_code=end.get("exit_code"),
        measurements=tuple(measurements),
        notes=tuple(dict.fromkeys(notes)),
        facts=_comparable(_facts(fold, counting, span, through_voir), fold, job),
    )


def _seat(job: Job) -> dict[str, str]:
    """Which of the processes of a launch this is: what they measured side by side must not pass for several launches."""
    seat = {"job": str(job.barrier.rank)} if job.barrier is not None and not takes_turns(job) else {}
    return seat | ({"node": job.node} if job.machines > 1 else {})


def _speaks_voir(job: Job) -> bool:
    """Whether this is a script run by voir, of which a rate is expected."""
    return job.phase == "run" and (job.data_file is not None or "DATA_FD" in job.env)


def _measurements(
    fold: Fold, benchmark: Benchmark, through_voir: VoirMeasured, span: Span | None
) -> tuple[list[Measurement], list[Note]]:
    found: list[Measurement] = _log_measurements(fold, benchmark)
    notes: list[Note] = list(through_voir.notes)
    records = list(fold.loops.values())
    counting = counting_loops(records)
    for record in records:
        if not record.all_steps or (record.counts and record not in counting):
            continue
        labels = {"loop": record.name}
        if len(counting) > 1 and record in counting:
            labels["rank"] = str(record.rank)
        more, remarks = loop_measurements(record, labels)
        found += more
        notes += remarks
    if len(counting) > 1:
        found += over_ranks(found, len(counting))
    found += [given_measurement(name, name, values) for name, values in fold.given.items()]
    found += [m for m in through_voir.measurements if not (counting and m.metric == "rate")]
    found += fold.model.figures
    found += _energy(fold, counting, span)
    return found + fold.samples.measurements(span) + _process_measurements(fold), notes


def _energy(fold: Fold, counting: list[LoopRecord], span: Span | None) -> list[Measurement]:
    """What one item took, of all devices together, while it was measured."""
    items = [record.phases["measured"].counted_items for record in counting]
    used = fold.samples.energy_j(span) if span is not None else None
    if used is None or not items or not all(items):
        return []
    each = used / sum(n for n in items if n is not None)
    return [Measurement(metric="energy.item", unit="J", direction=Direction.LOWER, samples=(each,), source="sampler")]


def _log_measurements(fold: Fold, benchmark: Benchmark) -> list[Measurement]:
    return [
        Measurement(
            metric=spec.name,
            unit=spec.unit,
            direction=spec.direction or guess_direction(spec.name, spec.unit),
            samples=tuple(float(v) for v in fold.log_values[spec.name]),
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

    def one(metric: str, unit: str, value: float, bound: str | None = None) -> Measurement:
        labels = {"bound": bound} if bound else {}
        return Measurement(
            metric=metric, unit=unit, direction=Direction.LOWER, samples=(value,), source="process", labels=labels
        )

    found = []
    if end.get("duration_s"):
        found.append(one("process.duration", "s", end["duration_s"]))
    if end.get("cpu_s") is not None:
        found.append(one("process.cpu_time", "s", end["cpu_s"]))
    # The kernel's own maximum sees peaks between two samples, but only of one process at a time.
    peak = max(fold.samples.peak_rss_bytes(), end.get("max_rss_bytes") or 0.0)
    if peak:
        found.append(one("memory.peak", "B", peak, bound="upper" if end.get("max_rss_is_bound") else None))
    return found


def _stream_notes(fold: Fold, benchmark: Benchmark, counting: list[LoopRecord]) -> list[Note]:
    notes = []
    if fold.unreadable:
        notes.append(
            Note(text="some lines of the stream could not be read and do not count", figure=f"{fold.unreadable} lines")
        )
    if fold.lost:
        notes.append(
            Note(text=f"{fold.lost} events were lost because the stream could not be written", severity="error")
        )
    for record in counting:
        if benchmark.stop is not None and (early := _ended_early(record, benchmark.stop)) is not None:
            notes.append(Note(text=f"loop '{record.name}' ended {early}"))
        if record.stop is not None and (record.stop.get("detail") or {}).get("reached") is False:
            notes.append(_imprecise(record.name, record.stop))
    ended_well = fold.end is not None and fold.end.get("exit_code") == 0
    of_model = isinstance(benchmark.workload, Model)  # which says itself why it was not measured
    if benchmark.stop is not None and not counting and not fold.voir.lines and ended_well and not of_model:
        notes.append(Note(text=_no_loop_to_stop(fold, benchmark)))
    return notes


def _ended_early(record: LoopRecord, rule: StopRule) -> str | None:
    """In words, if it ended before it was measured as its stop rule asks; of precision it says itself what it knows."""
    stop = record.stop
    if rule.steps:
        steps = len(record.phases["measured"].seconds)
        return f"after {steps} of the {rule.steps} steps to be measured" if steps < rule.steps else None
    if stop is None:  # by itself, by a crash or by its deadline
        return "before its stop rule was met"
    if stop.get("by") != "loop" or stop.get("rule") == "precision":
        return None
    if record.observations is not None and rule.observations:
        return f"after {len(record.observations.spans)} of the {rule.observations} observations to be measured"
    return "by itself before its stop rule was met"


def _no_loop_to_stop(fold: Fold, benchmark: Benchmark) -> str:
    names = sorted({f"'{record.name}'" for record in fold.loops.values()})
    if not names:
        return "a stop rule was given but no loop is instrumented; use benchprobe.iterate"
    return f"a stop rule was given but no loop is called '{benchmark.loop}'; there is {', '.join(names[:8])}"


def _imprecise(loop: str, stop: Event) -> Note:
    half_width = stop["detail"].get("half_width")
    known = "too few steps to tell" if half_width is None else f"± {half_width:.1%}"
    end = "ended" if stop.get("by") == "loop" else "reached its cap"
    return Note(text=f"loop '{loop}' {end} before it was precise enough ({known})")


def _measured_span(counting: list[LoopRecord]) -> Span | None:
    """From the first measured step of any rank to the last."""
    spans = [(s.first_ns, s.last_ns) for r in counting if (s := r.phases["measured"]).first_ns is not None]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _cpu_share(end: Event | None) -> float:
    """CPU time over duration: a program that mostly sleeps loses nothing by waiting for a core now and then."""
    if end is None or not end.get("duration_s"):
        return 0.0
    return float(end.get("cpu_s") or 0.0) / float(end["duration_s"])


def _left_ns(fold: Fold) -> int | None:
    """When a script run by voir, measured together with others, left or was ended."""
    if LEFT in fold.voir.marks:
        return fold.voir.marks[LEFT][0]
    end = fold.end or {}
    return end["t"] if end.get("early_stop") and isinstance(end.get("t"), int) else None


def _comparable(facts: dict[str, Any], fold: Fold, job: Job) -> dict[str, Any]:
    """Times of one of several nodes as times of day: their monotonic clocks have nothing to do with each other."""
    if job.node == "localhost" or fold.voir.began is None:
        return facts
    began_ns, wall_s = fold.voir.began
    shift_ns = round(wall_s * 1e9) - began_ns
    if "measured_ns" in facts:
        facts["measured_ns"] = tuple(t + shift_ns for t in facts["measured_ns"])
    if "ran_on_until_ns" in facts:
        facts["ran_on_until_ns"] += shift_ns
    return facts


def _facts(fold: Fold, counting: list[LoopRecord], span: Span | None, through_voir: VoirMeasured) -> dict[str, Any]:
    facts: dict[str, Any] = {"started": fold.start.get("pid") is not None} | fold.model.facts()
    if fold.voir.lines:
        wall = [(event or {}).get("wall") for event in (fold.start, fold.end)]  # seconds since 1970
        facts["voir"] = through_voir.facts | {"wall": wall}
    if span is not None:
        facts["measured_ns"] = span
        ran_on = [r.phases["after"].last_ns for r in counting if r.phases["after"].first_ns is not None]
        ran_on += [t for t in (_left_ns(fold),) if t is not None]
        if ran_on:  # unmeasured, so that the others are measured under the same load
            facts["ran_on_until_ns"] = max(span[1], min(ran_on))
    if fold.probes:
        first = next(iter(fold.probes.values()))
        facts["python"] = {k: first.get(k) for k in ("python", "executable", "prefix", "path", "version")}
    if counting:
        facts["loops"] = [
            {
                "name": r.name,
                "rank": r.rank,
                "on_device": r.on_device,
                "steps": {phase: len(steps.seconds) for phase, steps in r.phases.items()},
                "warmup": (r.measure or {}).get("warmup"),
                "stop": {k: v for k, v in (r.stop or {}).items() if k in _STOP_FACTS} or None,
            }
            for r in counting
        ]
    return facts

"""One job's events, folded into its Launch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.events.voir import LEFT
from benchwright.core.job import Job
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.core.note import Note
from benchwright.core.results.peak_memory import PEAK_RSS
from benchwright.core.run import Launch
from benchwright.core.secrets.redact import redact_body, redact_text
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import StopRule
from benchwright.record.authorship import Authorship
from benchwright.record.base import Kinds
from benchwright.record.fold import Fold
from benchwright.record.loops.loops import AFTER, MEASURED, TRAIN, LoopRecord, counting_loops, settled
from benchwright.record.loops.lost_ranks import lost_ranks
from benchwright.record.loops.measurements import given_measurement, loop_measurements
from benchwright.record.loops.ranks import over_ranks
from benchwright.record.loops.steps import samples_of
from benchwright.record.loops.verdict import judge_loops
from benchwright.record.names import told_apart
from benchwright.record.reading import Event, read_events
from benchwright.record.samples import Span, united
from benchwright.record.standstill import late_notes, standstill_notes
from benchwright.record.turns import judge_turns, left_out, own_only, takes_turns
from benchwright.record.verdict import LaunchVerdict, judge, log_notes
from benchwright.record.voir_rates import VoirMeasured, add_gpu_samples, measured_through_voir

_CLOCK_SLACK_NS = 1_000_000_000
_CLOCK_MOVED_S = 1.0
_STOP_FACTS = ("rule", "steps", "detail", "by", "turn_s", "turns", "paused_ns")


def record_stream(path: str | Path, job: Job, benchmark: Benchmark, kinds: Kinds) -> Launch:
    """The launch behind a stream file; a missing file is a job that left nothing. `kinds` gives the benchmark's kind."""
    try:
        return record_launch(read_events(path), job, benchmark, kinds)
    except (FileNotFoundError, IsADirectoryError):
        launch = record_launch((), job, benchmark, kinds)
        return msgspec.structs.replace(
            launch, detail="its stream is not there: it never began, or the file was removed"
        )


def record_launch(events: Iterable[Event], job: Job, benchmark: Benchmark, kinds: Kinds) -> Launch:
    """Fold `events` into measurements, notes and a verdict."""
    gatherer = kinds(benchmark).gatherer(benchmark)
    fold, authorship = Fold(gatherer=gatherer), Authorship()
    for event in events:
        authorship.look(event)
        try:
            fold.add(event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            fold.unreadable += 1  # an event whose keys are not what this version writes
    add_gpu_samples(fold.voir, fold.samples)
    through_voir = measured_through_voir(fold.voir, benchmark, gatherer.observations)
    counting = counting_loops(list(fold.loops.values()), benchmark.loop)
    _leave_out_cut_steps(fold, counting)
    span, clock_notes = _trusted(_measured_span(counting) or through_voir.span, fold)
    measurements, loop_notes = _measurements(fold, benchmark, counting, through_voir, span)
    measurements = gatherer.interpreted(measurements)
    if takes_turns(job):
        loop_notes += left_out(measurements)
        measurements = own_only(measurements)
    verdict = judge(benchmark, fold.end, fold.extraction, measurements, fold.voir, needs_rate=_speaks_voir(job))
    if verdict.status is Status.OK:
        verdict = gatherer.judge(measurements) or judge_loops(fold, benchmark, counting) or verdict
    if verdict.status is Status.OK and (lost := lost_ranks(fold.loops.values())) is not None:
        verdict = LaunchVerdict(Status.FAILED, Reason.INVALID, lost)
    if verdict.status is Status.OK and (wrong := authorship.problem(fold.unreadable)) is not None:
        verdict = LaunchVerdict(Status.FAILED, Reason.INVALID, wrong)
    if verdict.status is Status.OK and takes_turns(job):
        verdict = judge_turns(counting) or verdict
    measurements, name_notes = told_apart(measurements)
    if seat := _seat(job):
        measurements = [msgspec.structs.replace(m, labels=seat | m.labels) for m in measurements]
    notes = (
        fold.notes
        + clock_notes
        + loop_notes
        + name_notes
        + fold.voir.notes()
        + fold.gatherer.notes()
        + ([] if takes_turns(job) else fold.samples.notes(span, _cpu_share(fold.end)))
        + log_notes(fold.extraction, measurements)
        + standstill_notes(fold.pauses, fold.samples)
        + late_notes(fold.late)
        + _stream_notes(fold, benchmark, counting)
    )
    end = fold.end or {}
    return Launch(
        job=job.id,
        status=verdict.status,
        reason=verdict.reason,
        detail=None if verdict.detail is None else redact_text(verdict.detail),
        warmup=job.warmup,
        repeat=job.repeat,
        block=job.block,
        position=job.position,
        devices=job.devices,
        duration_s=end.get("duration_s"),
        exit_code=end.get("exit_code"),
        measurements=tuple(measurements),
        notes=tuple(dict.fromkeys(map(_without_secrets, notes))),
        facts=_comparable(_facts(fold, counting, span, through_voir), fold, job),
    )


def _leave_out_cut_steps(fold: Fold, counting: list[LoopRecord]) -> None:
    """Loops round the one that counts go on after it was ended by its rule; what they then do in a step is nothing."""
    stopped = {record.process: record.stopped_ns for record in counting if record.stopped_ns is not None}
    for record in fold.loops.values():
        if record not in counting and record.process in stopped:
            record.cut(stopped[record.process])


def _without_secrets(note: Note) -> Note:
    """What a program says of itself may hold the URL it failed to reach."""
    text = redact_text(note.text)
    return note if text == note.text else msgspec.structs.replace(note, text=text)


def _seat(job: Job) -> dict[str, str]:
    """Which of the processes of a launch this is: what they measured side by side must not pass for several launches."""
    seat = {"job": str(job.barrier.rank)} if job.barrier is not None and not takes_turns(job) else {}
    return seat | ({"node": job.node} if job.machines > 1 else {})


def _speaks_voir(job: Job) -> bool:
    """Whether this is a script run by voir, of which a rate is expected."""
    return job.phase == "run" and (job.data_file is not None or "DATA_FD" in job.env)


def _measurements(
    fold: Fold, benchmark: Benchmark, counting: list[LoopRecord], through_voir: VoirMeasured, span: Span | None
) -> tuple[list[Measurement], list[Note]]:
    found: list[Measurement] = _log_measurements(fold, benchmark)
    notes: list[Note] = list(through_voir.notes)
    for record in sorted(fold.loops.values(), key=lambda r: r not in counting):
        if not record.all_steps:
            continue
        labels = _labels(record, counting, fold)
        prefix = "" if record in counting else f"{record.name}."
        more, remarks = loop_measurements(record, labels, prefix=prefix)
        found += more
        notes += remarks
    found += over_ranks(found, len({r.rank for r in fold.loops.values() if r.rank is not None}))
    notes += _which_loop(fold, benchmark, counting)
    found += _given_outside_loops(fold)
    found += [_beside(m) if counting and m.metric == "rate" else m for m in through_voir.measurements]
    found += fold.gatherer.measurements()
    found += _energy(fold, counting, span)
    return found + fold.samples.measurements(span) + _process_measurements(fold), notes


def _given_outside_loops(fold: Fold) -> list[Measurement]:
    """Of several processes that give the same, the lowest rank speaks for the launch; the others are kept apart."""
    found = []
    for name, by_process in fold.given.items():
        ranks = {process: fold.probes.get(process, {}).get("rank") for process in by_process}
        order = sorted(by_process, key=lambda process: (ranks[process] is None, ranks[process] or 0))
        for number, process in enumerate(order):
            apart = {"process": str(number)} if ranks[process] is None else {"rank": str(ranks[process])}
            found.append(given_measurement(name, name, by_process[process], labels=apart if number else {}))
    return found


def _labels(record: LoopRecord, counting: list[LoopRecord], fold: Fold) -> dict[str, str]:
    """Which loop it is, and of which rank or process where several have one of that name."""
    labels = {"loop": record.name}
    same = [r for r in fold.loops.values() if r.name == record.name and r.all_steps]
    if len(same) < 2:
        return labels
    if record in counting:
        return labels | {"rank": str(record.rank)} if len(counting) > 1 else labels
    if record.rank is not None and sum(1 for r in same if r.rank == record.rank) == 1:
        return labels | {"rank": str(record.rank)}
    return labels | {"process": str(same.index(record))}


def _beside(rate: Measurement) -> Measurement:
    """What voir says of a program whose loop we measure ourselves."""
    return msgspec.structs.replace(rate, metric="voir.rate")


def _which_loop(fold: Fold, benchmark: Benchmark, counting: list[LoopRecord]) -> list[Note]:
    """What a reader should know where the choice of the loop that counts was not plain."""
    if not counting:
        return []
    name = counting[0].name
    notes = []
    others = [r for r in fold.loops.values() if r.name == name and r.all_steps and r not in counting]
    if others:
        text = f"loop '{name}' ran in other processes too, which are shown but not counted; give each a RANK to add them up"
        notes.append(Note(text=text, evidence=f"{len(others)} more"))
    busier = {r.name for r in fold.loops.values() if r.all_steps > counting[0].all_steps and r.name != name}
    if benchmark.loop is None and name != TRAIN and busier:
        named = ", ".join(f"'{other}'" for other in sorted(busier)[:4])
        text = f"loop '{name}' counts because it began first, but {named} has more steps; choose with --loop NAME"
        notes.append(Note(text=text))
    return notes


def _energy(fold: Fold, counting: list[LoopRecord], span: Span | None) -> list[Measurement]:
    """What one item took, of all devices together, while it was measured; what ran between two epochs is not its doing."""
    items = [record.phases[MEASURED].items.total for record in counting]
    if span is None or not items or not all(items):
        return []
    used = fold.samples.energy_j(united([s for record in counting for s in record.phases[MEASURED].stretches()]))
    if used is None:
        return []
    each = used / sum(n for n in items if n is not None)
    return [Measurement(metric="energy.item", unit="J", direction=Direction.LOWER, samples=(each,), source="sampler")]


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
    for metric, peak in fold.samples.memory_peaks(end.get("max_rss_bytes")).items():
        bound = "upper" if metric == PEAK_RSS and end.get("max_rss_is_bound") else None
        found.append(one(metric, "B", peak, bound=bound))
    return found


def _stream_notes(fold: Fold, benchmark: Benchmark, counting: list[LoopRecord]) -> list[Note]:
    notes = []
    if fold.unreadable:
        notes.append(
            Note(
                text="some lines of the stream could not be read and do not count", evidence=f"{fold.unreadable} lines"
            )
        )
    if fold.lost:
        notes.append(
            Note(text=f"{fold.lost} events were lost because the stream could not be written", severity="error")
        )
    ended_well = fold.end is not None and fold.end.get("exit_code") == 0
    for record in counting:
        if ended_well and not record.ends and record.stop is None:
            text = f"loop '{record.name}' was never ended: the process left in the middle of it, and its last steps may be missing"
            notes.append(Note(text=text))
        if benchmark.stop is not None and (early := _ended_early(record, benchmark.stop)) is not None:
            notes.append(Note(text=f"loop '{record.name}' ended {early}"))
        if record.stop is not None and (record.stop.get("detail") or {}).get("reached") is False:
            notes.append(_imprecise(record.name, record.stop))
    expected = benchmark.stop is not None and ended_well and not fold.gatherer.measures_itself
    if expected and not counting and not fold.voir.lines:
        notes.append(Note(text=_no_loop_to_stop(fold, benchmark)))
    return notes


def _ended_early(record: LoopRecord, rule: StopRule) -> str | None:
    """In words, if it ended before it was measured as its stop rule asks; of precision it says itself what it knows."""
    stop = record.stop
    if rule.steps:
        steps = len(record.phases[MEASURED])
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
    missing = "no loop counted" if benchmark.loop is None else f"no loop is called '{benchmark.loop}'"
    return f"a stop rule was given but {missing}; there is {', '.join(names[:8])}"


def _imprecise(loop: str, stop: Event) -> Note:
    half_width = stop["detail"].get("half_width")
    known = "too few steps to tell" if half_width is None else f"± {half_width:.1%}"
    end = "ended" if stop.get("by") == "loop" else "reached its cap"
    return Note(text=f"loop '{loop}' {end} before it was precise enough ({known})")


def _measured_span(counting: list[LoopRecord]) -> Span | None:
    """From the first measured step of any rank to the last."""
    spans = [(s.first_ns, s.last_ns) for r in counting if (s := r.phases[MEASURED]).first_ns is not None]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _trusted(span: Span | None, fold: Fold) -> tuple[Span | None, list[Note]]:
    """The span, unless it lies outside of the program's life: then its clock is another one than the supervisor's."""
    began, ended = fold.start.get("t"), (fold.end or {}).get("t")
    notes = _clock_set(fold)
    if span is None or not isinstance(began, int) or not isinstance(ended, int):
        return span, notes
    if began - _CLOCK_SLACK_NS <= span[0] <= span[1] <= ended + _CLOCK_SLACK_NS:
        return span, notes
    off_s = max(began - span[0], span[1] - ended) * 1e-9
    text = "the program's clock is not the machine's: what was sampled cannot be matched with its steps"
    return None, [*notes, Note(text=text, evidence=f"off by {off_s:.3g} s")]


def _clock_set(fold: Fold) -> list[Note]:
    """Said if the time of day was changed meanwhile; durations do not depend on it."""
    begin, end = fold.start, fold.end or {}
    stamps = [begin.get("t"), end.get("t"), begin.get("wall"), end.get("wall")]
    if not all(isinstance(stamp, int | float) for stamp in stamps):
        return []
    moved_s = (end["wall"] - begin["wall"]) - (end["t"] - begin["t"]) * 1e-9
    if abs(moved_s) < _CLOCK_MOVED_S:
        return []
    text = "the system clock was set while this ran; durations are measured by another clock and are not affected"
    return [Note(text=text, evidence=f"by {moved_s:+.3g} s")]


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


def _tells_its_python(event: Event) -> bool:
    """Whether this is what benchprobe says of a process, and not what somebody else wrote."""
    path = event.get("path")
    return isinstance(event.get("executable"), str) and isinstance(path, list) and all(isinstance(p, str) for p in path)


def _facts(fold: Fold, counting: list[LoopRecord], span: Span | None, through_voir: VoirMeasured) -> dict[str, Any]:
    facts: dict[str, Any] = {"started": fold.start.get("pid") is not None} | redact_body(fold.gatherer.facts())
    if fold.voir.lines:
        wall = [(event or {}).get("wall") for event in (fold.start, fold.end)]  # seconds since 1970
        facts["voir"] = through_voir.facts | {"wall": wall}
    if span is not None:
        facts["measured_ns"] = span
        ran_on = [r.phases[AFTER].last_ns for r in counting if r.phases[AFTER].first_ns is not None]
        ran_on += [t for t in (_left_ns(fold),) if t is not None]
        if ran_on:  # unmeasured, so that the others are measured under the same load
            facts["ran_on_until_ns"] = max(span[1], min(ran_on))
    if told := [event for event in fold.probes.values() if _tells_its_python(event)]:
        facts["python"] = {k: told[0].get(k) for k in ("python", "executable", "prefix", "path", "version")}
    if counting:
        facts["loops"] = [
            {
                "name": r.name,
                "rank": r.rank,
                "on_device": r.on_device,
                "steps": {phase: len(steps) for phase, steps in r.phases.items()},
                "items": (measured := settled(r)[0]).items.total,
                "seconds": measured.total_s,
                "host_s": measured.host_ns * 1e-9,
                "outside_s": fold.outside.bounds_s(r.key),
                "warmup": (r.measure or {}).get("warmup"),
                "stop": {k: v for k, v in (r.stop or {}).items() if k in _STOP_FACTS} or None,
            }
            for r in counting
        ]
    return facts

"""Folds one job's events into its Launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job
from benchwright.core.measurement import Measurement
from benchwright.core.metric import describes_work
from benchwright.core.note import Note
from benchwright.core.reported import LEFT, Reported
from benchwright.core.run import Launch
from benchwright.core.secrets import redact_body, redact_text
from benchwright.core.status import Reason, Status
from benchwright.record.base import Kinds
from benchwright.record.fold import Fold
from benchwright.record.loops.loops import AFTER, MEASURED, LoopRecord, counting_loops, settled
from benchwright.record.loops.verdict import judge_loops, lost_ranks
from benchwright.record.measurements import measurements_of, without_clashes
from benchwright.record.notes import cpu_share, stream_notes, without_secrets
from benchwright.record.reported_rates import ReportedRates, add_gpu_samples, reported_rates
from benchwright.record.samples import Span
from benchwright.record.standstill import late_notes, standstill_notes
from benchwright.record.stream_file import Event, read_events, stream_checksum
from benchwright.record.verdict import OK, LaunchVerdict, ignored_failure, judge, log_notes, stumbled

# Whether the agent's events were really written by the agent.
#
# A measured program knows where its stream is, and could claim there that it ended well. The agent numbers its own lines:
# a forged line has no number, a repeated one, or one after the end.


_AGENTS = frozenset(
    ["stream", "start", "sample", "metric", "printed", "reported", "extraction", "pause", "tick", "exit", "end"]
)
_OF_BOTH = frozenset(["message", "lost"])  # the program's own name its process


class Authorship:
    """Checks the events of a stream as they come."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()
        self._foreign = 0
        self._end: int | None = None

    def look(self, event: Event) -> None:
        kind = event.get("event")
        if kind not in _AGENTS and (kind not in _OF_BOTH or "process" in event):
            return
        number = event.get("n")
        if type(number) is not int or number < 0 or number in self._numbers or self._end is not None:
            self._foreign += 1
            return
        self._numbers.add(number)
        if kind == "end":
            self._end = number

    def problem(self, unreadable: int) -> str | None:
        """The fault in words; None if there is none, or the stream has no numbers. `unreadable`: how many lines were."""
        if not self._numbers:
            return None
        foreign = self._foreign + sum(1 for n in self._numbers if self._end is not None and n > self._end)
        if foreign:
            return f"{_counted(foreign)} in its stream claim to be the agent's but are not; a program must write only to its own files"
        missing = max(self._numbers) + 1 - len(self._numbers)
        if missing > unreadable:
            return f"{_counted(missing)} of the agent are missing from its stream: something else wrote to that file"
        return None


def _counted(events: int) -> str:
    return f"{events} event{'' if events == 1 else 's'}"


# What is stored of a launch besides its measurements.


_STOP_FACTS = ("rule", "steps", "detail", "by", "turn_s", "turns", "paused_ns")


def facts_of(
    fold: Fold, counting: list[LoopRecord], span: Span | None, rates: ReportedRates, job: Job
) -> dict[str, object]:
    facts: dict[str, object] = {"started": fold.start.get("pid") is not None} | redact_body(fold.gatherer.facts())
    if fold.start.get("warm"):
        facts["warm"] = True  # forked from a process that had imported what it needs
    if fold.reported.lines:
        wall = [(event or {}).get("wall") for event in (fold.start, fold.end)]  # seconds since 1970
        facts["reported"] = rates.facts | {"wall": wall}
    if fold.end is not None and fold.end.get("usage"):
        facts["usage"] = fold.end["usage"]
    if span is not None:
        facts["measured_ns"] = span
        ran_on = [r.phases[AFTER].last_ns for r in counting if r.phases[AFTER].first_ns is not None]
        ran_on += [t for t in (_left_ns(fold),) if t is not None]
        if ran_on:  # unmeasured, so that the others are measured under the same load
            facts["ran_on_until_ns"] = max(span[1], min(ran_on))
    if probes := [event for event in fold.probes.values() if _names_its_python(event)]:
        facts["python"] = {k: probes[0].get(k) for k in ("python", "executable", "prefix", "path", "version")}
    if counting:
        facts["loops"] = [
            {
                "name": r.name,
                "rank": r.rank,
                "on_device": r.on_device,
                **({"device_stride": r.device_stride} if r.device_stride > 1 else {}),
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
    return _comparable(facts, fold, job)


def _comparable(facts: dict[str, Any], fold: Fold, job: Job) -> dict[str, object]:
    """With several nodes, times become times of day: their monotonic clocks are unrelated."""
    if job.node == "localhost" or fold.reported.began is None:
        return facts
    began_ns, wall_s = fold.reported.began
    shift_ns = round(wall_s * 1e9) - began_ns
    if "measured_ns" in facts:
        facts["measured_ns"] = tuple(t + shift_ns for t in facts["measured_ns"])
    if "ran_on_until_ns" in facts:
        facts["ran_on_until_ns"] += shift_ns
    return facts


def _left_ns(fold: Fold) -> int | None:
    """When a script with another instrument, measured together with others, left or was ended."""
    if LEFT in fold.reported.marks:
        return fold.reported.marks[LEFT][0]
    end = fold.end or {}
    return end["t"] if end.get("early_stop") and isinstance(end.get("t"), int) else None


def _names_its_python(event: Event) -> bool:
    """Whether benchprobe wrote this, not somebody else."""
    path = event.get("path")
    return isinstance(event.get("executable"), str) and isinstance(path, list) and all(isinstance(p, str) for p in path)


# Launches that took turns: only measurements that exclude the others' turns count.


_SHARED = ("cpu.", "gpu.", "energy.", "process.duration", "process.gpu_time")  # over time in which others ran
_BY_WATCHING = ("sampler", "process")


def takes_turns(job: Job) -> bool:
    return job.barrier is not None and job.barrier.turn_s is not None


def own_only(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Without values sampled, or computed by the program, over time that includes others' turns."""
    kept = [m for m in measurements if m.source != "give" or _is_own(m)]
    return [m for m in kept if not (m.source in _BY_WATCHING and m.metric.startswith(_SHARED))]


def _is_own(given: Measurement) -> bool:
    """Whether a given value cannot depend on time: a loss, or a description of the workload."""
    name = given.metric.rpartition(".")[2]
    return name == "loss" or describes_work(given.metric)


def left_out(measurements: Sequence[Measurement]) -> list[Note]:
    """Values that a program computed itself may include the others' turns."""
    names = sorted({m.metric for m in measurements if m.source == "give" and not _is_own(m)})
    text = "left out because they may include pauses between turns: "
    return [Note(text=text + ", ".join(names), severity="info")] if names else []


def judge_turns(counting: Sequence[LoopRecord]) -> LaunchVerdict | None:
    """A program that took no turns ran alongside the others, so its measurement is invalid."""
    if any((record.stop or {}).get("turns") for record in counting):
        return None
    detail = "it took no turns and ran alongside the others: it has no instrumented loop, or none was measured"
    return LaunchVerdict(Status.FAILED, Reason.INVALID, f"{detail}; use benchprobe.iterate, or leave --turns out")


_CLOCK_SLACK_NS = 1_000_000_000
_CLOCK_MOVED_S = 1.0
_CHANGED = Note(
    text="its stream was changed after the launch had ended, so these may not be the numbers that were measured",
    evidence="its SHA-256 sum is not the one in checksums.sha256",
    remedy="restore the file from a copy, or measure again",
)


def record_stream(
    path: str | Path, job: Job, benchmark: Benchmark, kinds: Kinds, checksum: str | None = None
) -> Launch:
    """The launch recorded in a stream file; a missing file is a failed launch. `kinds` gives the benchmark's kind.

    `checksum`: of the stream when its launch ended, if known; a note says that it has another one now.
    """
    try:
        launch = record_launch(read_events(path), job, benchmark, kinds)
        if checksum is None or stream_checksum(path) == checksum:
            return launch
        return msgspec.structs.replace(launch, notes=(_CHANGED, *launch.notes))
    except (FileNotFoundError, IsADirectoryError):
        launch = record_launch((), job, benchmark, kinds)
        return msgspec.structs.replace(
            launch, detail="its stream is missing: it never started, or the file was removed"
        )


def record_launch(events: Iterable[Event], job: Job, benchmark: Benchmark, kinds: Kinds) -> Launch:
    """Fold `events` into measurements, notes and a verdict."""
    gatherer = kinds(benchmark).gatherer(benchmark)
    fold, authorship = Fold(gatherer=gatherer, reported=Reported(dialect=job.dialect or "")), Authorship()
    for event in events:
        authorship.look(event)
        try:
            fold.add(event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            fold.unreadable += 1  # an event with other keys than this version writes
    add_gpu_samples(fold.reported, fold.samples)
    wanted = _wanted(fold, job, benchmark, gatherer.observations)
    rates = reported_rates(fold.reported, benchmark, wanted)
    counting = counting_loops(list(fold.loops.values()), benchmark.loop)
    _leave_out_cut_steps(fold, counting)
    span, notes = _trusted(_measured_span(counting) or rates.span or gatherer.span, fold)
    measurements, loop_notes = measurements_of(fold, benchmark, counting, rates, span)
    measurements = gatherer.interpreted(measurements)
    if takes_turns(job):
        loop_notes += left_out(measurements)
        measurements = own_only(measurements)
    reports = _reports(job, benchmark, measurements)
    asked = benchmark if reports else msgspec.structs.replace(benchmark, metrics=(), loop=None, stop=None)
    verdict = _judge(fold, authorship, job, asked, counting, measurements, needs_rate=reports and _needs_rate(job))
    measurements, name_notes = without_clashes(measurements)
    if process := _process_labels(job):
        measurements = [msgspec.structs.replace(m, labels=process | m.labels) for m in measurements]
    sampled = [] if takes_turns(job) else fold.samples.notes(span, cpu_share(fold.end))
    if gatherer.watches_waiting:
        sampled = [note for note in sampled if note.kind != "busy"]
    notes = fold.notes + notes + loop_notes + name_notes + fold.reported.notes() + gatherer.notes() + sampled
    notes += log_notes(benchmark, fold.extraction, measurements) + standstill_notes(fold.pauses, fold.samples)
    notes += ignored_failure(benchmark, fold.end)
    if gatherer.stopped_early:
        notes += stumbled(fold.end)
    notes += late_notes(fold.late) + stream_notes(fold, asked, counting)
    end = fold.end or {}
    return Launch(
        job=job.id,
        status=verdict.status,
        reason=verdict.reason,
        detail=None if verdict.detail is None else redact_text(verdict.detail),
        warmup=job.warmup,
        launch=job.launch,
        block=job.block,
        position=job.position,
        devices=job.devices,
        duration_s=end.get("duration_s"),
        exit_code=end.get("exit_code"),
        measurements=tuple(measurements),
        notes=tuple(dict.fromkeys(map(without_secrets, notes))),
        facts=facts_of(fold, counting, span, rates, job) | ({} if reports else {"reports": False}),
    )


def _wanted(fold: Fold, job: Job, benchmark: Benchmark, asked: int | None) -> int | None:
    """How many of the reported observations are to count; None: all."""
    dialect = fold.dialects.get(fold.reported.dialect)
    if dialect is None or not dialect.keeps_rules(job, fold.reported):
        return None
    return asked or (benchmark.stop.observations if benchmark.stop is not None else None)


def _judge(
    fold: Fold,
    authorship: Authorship,
    job: Job,
    benchmark: Benchmark,
    counting: list[LoopRecord],
    measurements: list[Measurement],
    *,
    needs_rate: bool,
) -> LaunchVerdict:
    """How the process ended; if well, whether its kind, its loops and its stream can be trusted."""
    end = fold.end
    if end is not None and fold.gatherer.stopped_early:
        end = {**end, "early_stop": True}
    verdict = judge(benchmark, end, fold.extraction, measurements, fold.reported, needs_rate=needs_rate)
    if verdict.status is not Status.OK:
        verdict = _with_time_spent(_with_last_part(verdict, fold), fold)
        if not fold.gatherer.keeps(verdict, measurements):
            return verdict
        verdict = OK
    if (wrong := judge_loops(fold, benchmark, counting) or fold.gatherer.judge(measurements)) is not None:
        return wrong
    problem = lost_ranks(fold.loops.values()) or authorship.problem(fold.unreadable)
    if problem is not None:
        return LaunchVerdict(Status.FAILED, Reason.INVALID, problem)
    return (judge_turns(counting) if takes_turns(job) else None) or verdict


def _with_last_part(verdict: LaunchVerdict, fold: Fold) -> LaunchVerdict:
    """A launch that crashed in a library's native code can say nothing itself; its stream says how far it had come."""
    part = fold.gatherer.last_part() if verdict.reason is Reason.SIGNALLED else ""
    return LaunchVerdict(verdict.status, verdict.reason, f"{verdict.detail} in: {part}") if part else verdict


def _with_time_spent(verdict: LaunchVerdict, fold: Fold) -> LaunchVerdict:
    """A launch that took too long also tells what its time went into."""
    began, ended = fold.start.get("t"), (fold.end or {}).get("t")
    if verdict.reason is not Reason.TIMED_OUT or not isinstance(began, int) or not isinstance(ended, int):
        return verdict
    spent = fold.gatherer.spent(began, ended)
    return LaunchVerdict(verdict.status, verdict.reason, f"{verdict.detail} ({spent})") if spent else verdict


def _leave_out_cut_steps(fold: Fold, counting: list[LoopRecord]) -> None:
    """Loops around the one that counts go on after its stop rule ended it, with empty steps: leave these out."""
    stopped = {record.process: record.stopped_ns for record in counting if record.stopped_ns is not None}
    for record in fold.loops.values():
        if record not in counting and record.process in stopped:
            record.cut(stopped[record.process])


def _process_labels(job: Job) -> dict[str, str]:
    """Which process of the launch this is: parallel measurements must not pass for several launches."""
    labels = {"job": str(job.barrier.rank)} if job.barrier is not None and not takes_turns(job) else {}
    return labels | ({"node": job.node} if job.machines > 1 else {})


def _reports(job: Job, benchmark: Benchmark, measurements: Iterable[Measurement]) -> bool:
    """Whether what it measured counts, and has to be there."""
    if job.reports != "perhaps":
        return job.reports == "always"
    wanted = {"rate", *(spec.name for spec in benchmark.metrics if spec.required)}
    return any(m.metric in wanted and m.samples for m in measurements)


def _needs_rate(job: Job) -> bool:
    """Whether this is a script with another tool's instrument, which must report a rate."""
    return job.phase == "run" and job.dialect is not None


def _measured_span(counting: list[LoopRecord]) -> Span | None:
    """From the first measured step of any rank to the last."""
    spans = [(s.first_ns, s.last_ns) for r in counting if (s := r.phases[MEASURED]).first_ns is not None]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _trusted(span: Span | None, fold: Fold) -> tuple[Span | None, list[Note]]:
    """The span, unless it is outside the program's lifetime: then its clock is not the supervisor's."""
    began, ended = fold.start.get("t"), (fold.end or {}).get("t")
    notes = _clock_set(fold)
    if span is None or not isinstance(began, int) or not isinstance(ended, int):
        return span, notes
    if began - _CLOCK_SLACK_NS <= span[0] <= span[1] <= ended + _CLOCK_SLACK_NS:
        return span, notes
    off_s = max(began - span[0], span[1] - ended) * 1e-9
    text = "the program's clock is not the machine's: samples cannot be matched with its steps"
    return None, [*notes, Note(text=text, evidence=f"off by {off_s:.3g} s")]


def _clock_set(fold: Fold) -> list[Note]:
    """A note if the system clock was changed during the launch; durations do not depend on it."""
    begin, end = fold.start, fold.end or {}
    stamps = [begin.get("t"), end.get("t"), begin.get("wall"), end.get("wall")]
    if not all(isinstance(stamp, int | float) for stamp in stamps):
        return []
    moved_s = (end["wall"] - begin["wall"]) - (end["t"] - begin["t"]) * 1e-9
    if abs(moved_s) < _CLOCK_MOVED_S:
        return []
    text = "the system clock was changed while this ran; durations use another clock and are not affected"
    return [Note(text=text, evidence=f"by {moved_s:+.3g} s")]

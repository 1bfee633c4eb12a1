"""Folds one job's events into its Launch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job
from benchwright.core.measurement import Measurement
from benchwright.core.note import Note
from benchwright.core.run import Launch
from benchwright.core.secrets.redact import redact_text
from benchwright.core.status import Reason, Status
from benchwright.record.authorship import Authorship
from benchwright.record.base import Kinds
from benchwright.record.facts import facts_of
from benchwright.record.fold import Fold
from benchwright.record.loops.loops import MEASURED, LoopRecord, counting_loops
from benchwright.record.loops.verdict import judge_loops, lost_ranks
from benchwright.record.measurements import measurements_of, without_clashes
from benchwright.record.notes import cpu_share, stream_notes, without_secrets
from benchwright.record.reading import Event, read_events, stream_checksum
from benchwright.record.samples import Span
from benchwright.record.standstill import late_notes, standstill_notes
from benchwright.record.turns import judge_turns, left_out, own_only, takes_turns
from benchwright.record.verdict import OK, LaunchVerdict, ignored_failure, judge, log_notes, stumbled
from benchwright.record.voir_rates import add_gpu_samples, measured_through_voir

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
    fold, authorship = Fold(gatherer=gatherer), Authorship()
    for event in events:
        authorship.look(event)
        try:
            fold.add(event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            fold.unreadable += 1  # an event with other keys than this version writes
    add_gpu_samples(fold.voir, fold.samples)
    wanted = _wanted_of_voir(fold, job, benchmark, gatherer.observations)
    through_voir = measured_through_voir(fold.voir, benchmark, wanted)
    counting = counting_loops(list(fold.loops.values()), benchmark.loop)
    _leave_out_cut_steps(fold, counting)
    span, notes = _trusted(_measured_span(counting) or through_voir.span, fold)
    measurements, loop_notes = measurements_of(fold, benchmark, counting, through_voir, span)
    measurements = gatherer.interpreted(measurements)
    if takes_turns(job):
        loop_notes += left_out(measurements)
        measurements = own_only(measurements)
    reports = _reports(job, benchmark, measurements)
    asked = benchmark if reports else msgspec.structs.replace(benchmark, metrics=(), loop=None, stop=None)
    verdict = _judge(fold, authorship, job, asked, counting, measurements, needs_rate=reports and _speaks_voir(job))
    measurements, name_notes = without_clashes(measurements)
    if process := _process_labels(job):
        measurements = [msgspec.structs.replace(m, labels=process | m.labels) for m in measurements]
    sampled = [] if takes_turns(job) else fold.samples.notes(span, cpu_share(fold.end))
    notes = fold.notes + notes + loop_notes + name_notes + fold.voir.notes() + gatherer.notes() + sampled
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
        repeat=job.repeat,
        block=job.block,
        position=job.position,
        devices=job.devices,
        duration_s=end.get("duration_s"),
        exit_code=end.get("exit_code"),
        measurements=tuple(measurements),
        notes=tuple(dict.fromkeys(map(without_secrets, notes))),
        facts=facts_of(fold, counting, span, through_voir, job) | ({} if reports else {"reports": False}),
    )


def _wanted_of_voir(fold: Fold, job: Job, benchmark: Benchmark, asked: int | None) -> int | None:
    """How many observations are to count. A program that only hides its data in its output, without voir, knows nothing of
    voir's options: all it reports counts."""
    words = [os.path.basename(word) for word in job.argv]
    if not fold.voir.phases and job.data_file is None and "voir" not in words:
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
    verdict = judge(benchmark, end, fold.extraction, measurements, fold.voir, needs_rate=needs_rate)
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


def _speaks_voir(job: Job) -> bool:
    """Whether this is a script run by voir, which must report a rate."""
    return job.phase == "run" and (job.data_file is not None or "DATA_FD" in job.env)


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

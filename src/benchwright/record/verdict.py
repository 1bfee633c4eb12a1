"""Whether a launch succeeded, and if not, why: no data, an unparsed log or a dead worker is never a success."""

from __future__ import annotations

import math
import signal
from collections.abc import Sequence

import msgspec

from benchwright.core.aggregates import AggregateError, aggregate
from benchwright.core.benchmark import Benchmark
from benchwright.core.columns import not_finite, not_positive
from benchwright.core.measurement import Measurement, first_bad_sample
from benchwright.core.metric import REGEX, must_be_positive
from benchwright.core.note import Note
from benchwright.core.pattern import NUMBER, better_pattern
from benchwright.core.reported import Reported
from benchwright.core.status import Reason, Status
from benchwright.core.stream_dialect import STREAM_DIALECTS
from benchwright.record.stream_file import Event


class LaunchVerdict(msgspec.Struct, frozen=True):
    status: Status
    reason: Reason | None = None
    detail: str | None = None


OK = LaunchVerdict(Status.OK)


def judge(
    benchmark: Benchmark,
    end: Event | None,
    extraction: Event | None,
    measurements: Sequence[Measurement],
    said: Reported | None = None,
    *,
    needs_rate: bool = False,
) -> LaunchVerdict:
    """Even if a loop met its stop rule, what the program did afterwards is judged too.

    `said`: what it reported through another tool's instrument; `needs_rate`: without a rate it has failed.
    """
    if end is None:
        return LaunchVerdict(Status.FAILED, Reason.AGENT_LOST, "the stream has no end: the agent or the machine died")
    return (
        _explained(_how_it_ended(end, benchmark), said)
        or _said_error(said)
        or (_no_rate(measurements, said) if needs_rate else None)
        or _missing_metrics(benchmark, extraction, measurements)
        or _given_up(benchmark, extraction)
        or _not_finite(measurements)
        or _impossible(benchmark, measurements)
        or OK
    )


def _how_it_ended(end: Event, benchmark: Benchmark) -> LaunchVerdict | None:
    detail = end.get("detail")
    if end.get("not_ready"):
        return LaunchVerdict(Status.FAILED, Reason.NOT_READY, detail)
    if end.get("stopped"):
        return LaunchVerdict(Status.INTERRUPTED, Reason.STOPPED, detail or "benchwright was asked to stop")
    if end.get("agent_lost"):
        return LaunchVerdict(Status.FAILED, Reason.AGENT_LOST, detail or "the agent was killed")
    if end.get("disk_full"):
        return LaunchVerdict(Status.FAILED, Reason.DISK_FULL, detail or "the disk was full, and events were lost")
    if end.get("timed_out"):
        return LaunchVerdict(
            Status.FAILED, Reason.TIMED_OUT, detail or f"still running after {end.get('duration_s', 0):.1f} s"
        )
    if end.get("early_stop"):
        return None  # it asked to be ended, having been measured enough: the signal was ours
    if end.get("out_of_memory"):
        return LaunchVerdict(Status.FAILED, Reason.OUT_OF_MEMORY, detail or "out of memory")
    if end.get("signal") is not None:
        return LaunchVerdict(Status.FAILED, Reason.SIGNALLED, detail or f"ended by {signal_name(end['signal'])}")
    code = end.get("exit_code")
    if code is None:
        return LaunchVerdict(Status.FAILED, Reason.CRASHED, detail or "could not be started")
    if code != 0 and (detail or not benchmark.ignore_failure):
        return LaunchVerdict(Status.FAILED, Reason.CRASHED, detail or f"exit code {code}")
    if detail:
        # The program was fine but something of its record was not kept, such as on a full disk.
        return LaunchVerdict(Status.FAILED, Reason.INVALID, detail)
    return None


def _explained(verdict: LaunchVerdict | None, said: Reported | None) -> LaunchVerdict | None:
    """A crash with the error that the instrument saw, where it saw one."""
    errors = [] if said is None else said.errors or said.late_errors
    if verdict is None or verdict.reason is not Reason.CRASHED or not errors:
        return verdict
    error = errors[0]
    ran_out = "outofmemory" in error.replace(" ", "").lower()
    return LaunchVerdict(
        verdict.status, Reason.OUT_OF_MEMORY if ran_out else verdict.reason, f"{verdict.detail}: {error}"
    )


def _said_error(said: Reported | None) -> LaunchVerdict | None:
    """The program ended normally, but had reported an error."""
    if said is None or not said.errors:
        return None
    return LaunchVerdict(Status.FAILED, Reason.CRASHED, said.errors[0])


def _no_rate(measurements: Sequence[Measurement], said: Reported | None) -> LaunchVerdict | None:
    if any(m.metric == "rate" and m.samples for m in measurements):
        return None
    if said is None or said.dialect not in STREAM_DIALECTS:
        return LaunchVerdict(Status.FAILED, Reason.NO_DATA, "no rate was reported")
    why = STREAM_DIALECTS.load(said.dialect)().no_rate(said)
    return LaunchVerdict(Status.FAILED, Reason.NO_DATA, why)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _missing_metrics(
    benchmark: Benchmark, extraction: Event | None, measurements: Sequence[Measurement]
) -> LaunchVerdict | None:
    found = {m.metric for m in measurements if m.source == "log" and m.samples}
    missing = [spec for spec in benchmark.metrics if spec.required and spec.name not in found]
    if missing:
        facts = (extraction or {}).get("metrics", {})
        words = [_why_missing(spec.name, spec.pattern, facts.get(spec.name, {})) for spec in missing]
        return LaunchVerdict(Status.FAILED, Reason.NO_DATA, "; ".join(words))
    return None


def _why_missing(name: str, pattern: str, facts: Event) -> str:
    if facts.get("cut_off"):
        return f"'{name}': the pattern {pattern!r} took too long and was cut off; make it simpler"
    if facts.get("unparsed"):
        text = f"'{name}': {facts['unparsed']} matches of {pattern!r} held no number"
        remedy = f"write {NUMBER} where the number stands"
        if NUMBER in pattern:
            remedy = "print the number so that it has one reading: 1234, not 1,234"
        return f"{text}{_first_line(facts.get('unparsed_examples'))}; {remedy}"
    text = f"'{name}': {pattern!r} matched no line"
    nearest = facts.get("nearest") or []
    if nearest:
        text += "; nearest: " + " | ".join(f"line {n['line']}: {n['text']}" for n in nearest[:3])
    return text


def _given_up(benchmark: Benchmark, extraction: Event | None) -> LaunchVerdict | None:
    """Values from only part of the log are not a measurement."""
    facts = (extraction or {}).get("metrics", {})
    for spec in benchmark.metrics:
        if facts.get(spec.name, {}).get("given_up"):
            lines = ", ".join(map(str, facts[spec.name].get("cut_off_lines", [])))
            text = f"'{spec.name}': the pattern {spec.pattern!r} took too long (lines {lines}) and was not tried on the rest"
            return LaunchVerdict(Status.FAILED, Reason.INVALID, f"{text} of the log; make it simpler")
    return None


def ignored_failure(benchmark: Benchmark, end: Event | None) -> list[Note]:
    """A note if a launch counts although its program failed."""
    code = (end or {}).get("exit_code")
    if not benchmark.ignore_failure or not code:
        return []
    return [Note(text="the program failed, which --ignore-failure counts as a result", evidence=f"exit code {code}")]


def stumbled(end: Event | None) -> list[Note]:
    """A note if a program that was stopped early did not end well then."""
    code, signalled = (end or {}).get("exit_code"), (end or {}).get("signal")
    if not code and signalled is None:
        return []
    how = f"exit code {code}" if signalled is None else signal_name(signalled)
    text = "the script failed after its training had been stopped early; what was measured before counts, see its log"
    return [Note(text=text, evidence=how)]


def _first_line(examples: Sequence[Event] | None) -> str:
    return f" (line {examples[0]['line']}: {examples[0]['text']})" if examples else ""


def log_notes(benchmark: Benchmark, extraction: Event | None, measurements: Sequence[Measurement]) -> list[Note]:
    """Notes about parts of the log that do not count, or make a number doubtful."""
    notes = []
    patterns = {spec.name: spec.pattern for spec in benchmark.metrics if spec.kind == REGEX}
    for name, facts in (extraction or {}).get("metrics", {}).items():
        matches, unparsed, cut_off = (facts.get(key, 0) for key in ("matches", "unparsed", "cut_off"))
        if matches and unparsed:
            text = f"some matches of the pattern of '{name}' held no number and do not count"
            notes.append(Note(text=text, evidence=f"{unparsed} of {matches + unparsed}"))
        if facts.get("partial"):
            notes.append(_partial_note(name, facts, patterns.get(name)))
        if matches and cut_off and not facts.get("given_up"):
            text = f"the pattern of '{name}' took too long on some lines, which do not count; make it simpler"
            notes.append(Note(text=text, evidence=f"{cut_off} lines"))
    for m in measurements:
        if m.source not in ("give", "log"):
            continue
        wrong = not_finite(m.samples)
        if wrong:
            notes.append(
                Note(text=f"some values of '{m.metric}' are not finite", evidence=f"{wrong} of {len(m.samples)}")
            )
        kind = must_be_positive(m.metric, m.unit)
        wrong = not_positive(m.samples) if kind is not None else 0
        if wrong:
            text = f"some values of '{m.metric}' are zero or negative, which no {kind} can be"
            notes.append(Note(text=text, evidence=f"{wrong} of {len(m.samples)}"))
    return notes


def _partial_note(name: str, facts: Event, pattern: str | None) -> Note:
    """A number that was cut in the middle: `1` of `1,234.5`."""
    better = None if pattern is None else better_pattern(pattern)
    remedy = "write the pattern so that it takes the whole number"
    if better == pattern:
        remedy = "if it is one number, write the text that follows it in the pattern too"
    elif better is not None:
        remedy = f"write '{name}={better}'"
    share = f"{facts['partial']} of {facts.get('matches', 0)}"
    examples = [f"line {example['line']}: {example['text']}" for example in facts.get("partial_examples", [])[:1]]
    return Note(
        text=f"some values of '{name}' are only part of a number",
        evidence=", ".join([share, *examples]),
        remedy=remedy,
    )


def _impossible(benchmark: Benchmark, measurements: Sequence[Measurement]) -> LaunchVerdict | None:
    """A requested number, or the rate of the loop that counts, must be finite, and positive if a rate or a time."""
    asked = {spec.name for spec in benchmark.metrics if spec.required}
    for m in measurements:
        is_rate = m.metric == "rate" and m.source == "loop"
        if not (is_rate or (m.source == "log" and m.metric in asked)):
            continue
        number = _launch_number(m)
        if number is None:
            continue
        unit = f" {m.unit}" if m.unit else ""
        if not math.isfinite(number):
            return LaunchVerdict(Status.FAILED, Reason.INVALID, f"{m.metric} is {number:g}, which is not a result")
        kind = "rate" if is_rate else must_be_positive(m.metric, m.unit)
        if kind is not None and number <= 0:
            return LaunchVerdict(
                Status.FAILED, Reason.INVALID, f"{m.metric} is {number:g}{unit}, which no {kind} can be"
            )
    return None


def _launch_number(m: Measurement) -> float | None:
    """As reports will show it; None if that needs more than the samples."""
    if m.value is not None:
        return m.value
    try:
        return aggregate(m.aggregate, m.samples, workers=1)
    except AggregateError:
        return None


def _not_finite(measurements: Sequence[Measurement]) -> LaunchVerdict | None:
    for m in measurements:
        if "loss" not in m.metric.lower() or m.source not in ("give", "log"):
            continue
        bad = first_bad_sample(m)
        if bad is not None:
            place, value = bad
            count = len(m.warmup_samples) + len(m.samples)
            detail = f"{m.metric} became {value} at sample {place + 1} of {count}"
            return LaunchVerdict(Status.FAILED, Reason.INVALID, detail)
    return None

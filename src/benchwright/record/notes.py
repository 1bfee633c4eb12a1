"""Notes about a launch: which loop counts, how it ended, what its stream lost."""

from __future__ import annotations

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.note import Note
from benchwright.core.secrets import redact_text
from benchwright.core.stop_rule import NEVER, StopRule
from benchwright.record.fold import Fold
from benchwright.record.loops.loops import MEASURED, TRAIN, LoopRecord
from benchwright.record.stream_file import Event


def loop_choice_notes(fold: Fold, benchmark: Benchmark, counting: list[LoopRecord]) -> list[Note]:
    """Notes if it was not obvious which loop counts."""
    if not counting:
        return []
    name = counting[0].name
    notes = []
    others = [r for r in fold.loops.values() if r.name == name and r.all_steps and r not in counting]
    counted = {r.process for r in counting}
    beside = [r for r in others if r.process in counted]
    if beside:
        text = f"loop '{name}' also ran at the same time in another thread or task, where it was not counted"
        notes.append(Note(text=text, remedy="give each a name of its own", evidence=f"{len(beside)} more"))
    elsewhere = len(others) - len(beside)
    if elsewhere:
        text = f"loop '{name}' also ran in other processes, which are shown but not counted; set RANK in each to add them up"
        notes.append(Note(text=text, evidence=f"{elsewhere} more"))
    busier = {r.name for r in fold.loops.values() if r.all_steps > counting[0].all_steps and r.name != name}
    if benchmark.loop is None and name != TRAIN and busier:
        named = ", ".join(f"'{other}'" for other in sorted(busier)[:4])
        text = f"loop '{name}' counts because it began first, but {named} has more steps; choose with --loop NAME"
        notes.append(Note(text=text))
    return notes


def stream_notes(fold: Fold, benchmark: Benchmark, counting: list[LoopRecord]) -> list[Note]:
    notes = []
    if fold.unreadable:
        notes.append(
            Note(text="some lines of the stream were unreadable and do not count", evidence=f"{fold.unreadable} lines")
        )
    if fold.lost:
        notes.append(
            Note(text=f"{fold.lost} events were lost because the stream could not be written", severity="error")
        )
    rule = None if benchmark.stop == NEVER else benchmark.stop
    ended_well = fold.end is not None and fold.end.get("exit_code") == 0
    for record in counting:
        if ended_well and not record.ends and record.stop is None:
            text = f"loop '{record.name}' was never finished: the process exited inside it, and its last steps may be missing"
            notes.append(Note(text=text))
        if rule is not None and (early := _ended_early(record, rule)) is not None:
            notes.append(Note(text=f"loop '{record.name}' ended {early}"))
        if record.stop is not None and (record.stop.get("detail") or {}).get("reached") is False:
            notes.append(_imprecise(record.name, record.stop))
    expected = rule is not None and ended_well and not fold.gatherer.measures_itself
    if expected and not counting and not fold.reported.lines:
        notes.append(Note(text=_no_loop_to_stop(fold, benchmark)))
    return notes


def _ended_early(record: LoopRecord, rule: StopRule) -> str | None:
    """In words, if it ended before its stop rule was met; a precision rule reports that itself."""
    stop = record.stop
    if rule.steps:
        steps = len(record.phases[MEASURED])
        return f"after {steps} of the {rule.steps} steps to be measured" if steps < rule.steps else None
    if stop is None:  # it ended by itself, by a crash or at its deadline
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
    return f"a stop rule was given but {missing}; found {', '.join(names[:8])}"


def _imprecise(loop: str, stop: Event) -> Note:
    half_width = stop["detail"].get("half_width")
    known = "too few steps to tell" if half_width is None else f"± {half_width * 100:.1f} %"
    end = "ended" if stop.get("by") == "loop" else "reached its limit"
    return Note(text=f"loop '{loop}' {end} before it was precise enough ({known})")


def cpu_share(end: Event | None) -> float:
    """CPU time over duration: a program that mostly sleeps hardly suffers from waiting for a core."""
    if end is None or not end.get("duration_s"):
        return 0.0
    return float(end.get("cpu_s") or 0.0) / float(end["duration_s"])


def without_secrets(note: Note) -> Note:
    """A program's message may contain a URL with a password."""
    text = redact_text(note.text)
    return note if text == note.text else msgspec.structs.replace(note, text=text)

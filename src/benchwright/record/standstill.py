"""Notes about time in which the program could not run, and about results that came after its end."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.note import Note
from benchwright.record.samples import Samples
from benchwright.record.stream_file import Event

DISTURBING = "suspended"  # the kind of these notes
_TEXTS = {
    "program": "the program was stopped by a signal (SIGSTOP or the like) while it ran; times include that",
    "machine": "the machine was suspended while the program ran",
    "supervisor": "benchwright could not run for a while: its container was frozen, the machine paused or overloaded; "
    "times may be too long",
}
_OF_CHILDREN = "processes of the program were stopped by a signal (SIGSTOP or the like); times include that"
# Events that hold the program's results; benchprobe's other events are about the process.
RESULTS = frozenset(("give", "steps", "measured"))


def standstill_notes(pauses: Sequence[Event], samples: Samples) -> list[Note]:
    """One note for each thing that was paused, with the total time."""
    paused_ns: dict[str, int] = {}
    for pause in pauses:
        paused_ns[pause["what"]] = paused_ns.get(pause["what"], 0) + int(pause["ns"])
    notes = [
        Note(text=_TEXTS[what], evidence=_seconds(ns), kind=DISTURBING)
        for what, ns in paused_ns.items()
        if what in _TEXTS
    ]
    counts = samples.series.get(("process", "stopped", None), [])
    if counts and "program" not in paused_ns:
        rounds = len(samples.series.get(("process", "processes", None), counts))
        notes.append(Note(text=_OF_CHILDREN, evidence=f"in {len(counts)} of {rounds} samples", kind=DISTURBING))
    return notes


def is_late(event: Event, exited_ns: int | None) -> bool:
    """Whether it is a result from a child process after the program itself had ended."""
    return exited_ns is not None and event["event"] in RESULTS and "process" in event and event["t"] > exited_ns


def late_notes(late: int) -> list[Note]:
    text = "results from a child process that outlived the program do not count; have the program wait for its children"
    return [Note(text=text, evidence=f"{late} events")] if late else []


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.2g} s" if ns < 1e9 else f"{ns / 1e9:.1f} s"

"""The notes of several launches, each once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.core.note import Note
from benchwright.core.run import Launch


def noted_of(launches: Sequence[Launch]) -> list[Note]:
    """With how many launches each concerns and the worst evidence. Warm-up launches are left out: they do not count."""
    measured = [x for x in launches if not x.warmup]
    same: dict[str, list[Note]] = {}
    for launch in measured:
        for note in launch.notes:
            same.setdefault(note.text, []).append(note)
    return [replace(notes[0], evidence=_evidence(notes, len(measured))) for notes in same.values()]


def worst_evidence(notes: Sequence[Note]) -> str | None:
    """Evidence begins with the figure that matters, and the smallest is the worst."""
    return min((note.evidence for note in notes if note.evidence), default=None)


def _evidence(notes: Sequence[Note], launches: int) -> str | None:
    share = None if launches == 1 else f"{len(notes)} of {launches} launches"
    return ", ".join(filter(None, (share, worst_evidence(notes)))) or None

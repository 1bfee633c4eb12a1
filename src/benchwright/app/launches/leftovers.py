"""Before anything is measured: ending what an earlier attempt at the run left behind, and telling of what others left."""

from __future__ import annotations

from pathlib import Path

from benchwright.core.node.leftovers import Leftovers
from benchwright.core.note import Note
from benchwright.executors.base import Executor
from benchwright.runs.marks import read_marks

_MOST_NAMES = 5


def clear_leftovers(folder: Path, executor: Executor) -> tuple[Note, ...]:
    """What a reader of the run should know about it. The caller holds the folder: nobody else measures into it."""
    return tuple(_notes(executor.end_leftovers(read_marks(folder))))


def _notes(found: Leftovers) -> list[Note]:
    notes = []
    if found.ended:
        text = "an earlier attempt at this run was killed; its leftover processes were ended before measuring"
        notes.append(Note(text=text, evidence=_listed(found.ended)))
    if found.left:
        text = "leftover processes of an earlier attempt at this run cannot be ended and keep running"
        notes.append(Note(text=text, evidence=_listed(found.left), severity="error", kind="busy"))
    if found.unknown:
        text = "nodes that did not answer may still run processes of an earlier attempt at this run"
        notes.append(Note(text=text, evidence=_listed(found.unknown), kind="busy"))
    if found.of_others:
        text = "another benchwright run was killed and its processes are still running; resume it to end them, or kill them"
        notes.append(Note(text=text, evidence=_listed(found.of_others), kind="busy"))
    return notes


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more

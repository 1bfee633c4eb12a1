"""What we measure and what a program says of itself are different series, also where they have the same name."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.measurement import Measurement
from benchwright.core.metric import OURS
from benchwright.core.note import Note

_PREFIX = {"log": "log.", "give": "given."}


def told_apart(found: Sequence[Measurement]) -> tuple[list[Measurement], list[Note]]:
    """A value that a program gave or printed under the name of a measured one goes by another name; a note says so.

    Of two that a program says, the one asked for keeps its name: the one in the log.
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

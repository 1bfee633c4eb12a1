"""Ranks that died unnoticed: a launcher may end well although one of its processes never finished its loop."""

from __future__ import annotations

from collections.abc import Iterable

from benchwright.record.loops.loops import LoopRecord


def lost_ranks(records: Iterable[LoopRecord]) -> str | None:
    """Which ranks began the loop that counts and never ended it, while others did; None if there are none.

    What the others measured was then not the work of all.
    """
    counting = [record for record in records if record.counts and record.rank is not None]
    names = {record.name for record in counting if record.ends or record.stop is not None}
    lost = [r for r in counting if r.name in names and not r.ends and r.stop is None]
    if not lost:
        return None
    which = ", ".join(str(rank) for rank in sorted({r.rank for r in lost if r.rank is not None}))
    few = "rank" if len(lost) == 1 else "ranks"
    return f"{few} {which} began loop '{lost[0].name}' and never finished it: a process died or exited, so not all were measured"

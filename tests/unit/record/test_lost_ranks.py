"""A rank that dies in its loop spoils the launch, though the program ends well."""

from __future__ import annotations

from benchwright.record.loops.loops import LoopRecord
from benchwright.record.loops.verdict import lost_ranks


def loop(rank: int | None, *ends: str, counts: bool = True, stop: bool = False, name: str = "train") -> LoopRecord:
    return LoopRecord(
        process=rank or 0, name=name, counts=counts, rank=rank, ends=list(ends), stop={} if stop else None
    )


def test_ranks_that_all_ended_or_were_stopped_are_fine() -> None:
    assert lost_ranks([loop(0, "exhausted"), loop(1, "stopped", stop=True), loop(2, stop=True)]) is None


def test_a_rank_that_never_ended_is_named() -> None:
    assert lost_ranks([loop(0, "exhausted"), loop(3), loop(1)]) == (
        "ranks 1, 3 began loop 'train' and never finished it: a process died or exited, so not all were measured"
    )


def test_where_nobody_ended_it_the_launch_s_own_ending_tells() -> None:
    assert lost_ranks([loop(0), loop(1)]) is None


def test_other_loops_and_processes_without_a_rank_are_not_asked() -> None:
    assert lost_ranks([loop(0, "exhausted"), loop(1, counts=False), loop(None), loop(2, name="validate")]) is None

"""Benchmarks that run at the same time and take turns: the launches of a block start together.

On a machine whose speed wanders within seconds, successive launches say more about the moment than about the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job, JobBarrier
from benchwright.plan.base import Planner
from benchwright.plan.process_slots import ProcessSlot

WHERE = "--turns"


def started_together(launches: Sequence[tuple[Job, ...]]) -> list[list[tuple[Job, ...]]]:
    """The launches in order, grouped if they take turns with each other, or wait for each other."""
    groups: list[list[tuple[Job, ...]]] = []
    for folder, group in groupby(launches, _place_of_turns):
        if folder is None:
            groups += [[launch] for launch in group]
        else:
            groups.append(list(group))
    return groups


def _place_of_turns(launch: tuple[Job, ...]) -> str | None:
    barrier, turn = launch[0].barrier, launch[0].turn
    if turn is not None:
        return turn.folder
    return barrier.folder if barrier is not None and barrier.turn_s is not None else None


def refuse_turns(benchmark: Benchmark, planner: Planner, slots: Sequence[ProcessSlot]) -> None:
    """InvalidInput if it cannot take turns: a turn begins and ends between two steps of one loop in one process."""
    what = planner.why_no_turns(benchmark)
    if what is None and (len(slots) > 1 or any(slot.machines > 1 for slot in slots)):
        what = f"{benchmark.name} is measured by several processes, which cannot take turns"
    elif what is None and benchmark.metrics:
        what = f"{benchmark.name} reports numbers by its own clock, which includes the others' turns"
    if what is not None:
        raise InvalidInput(what, where=WHERE, remedy="leave --turns out; --interleave alternates whole launches")


def refuse_too_few(benchmarks: Sequence[Benchmark], planner_of: Callable[[Benchmark], Planner]) -> None:
    """InvalidInput if fewer than two can take turns."""
    for benchmark in benchmarks:
        refuse_turns(benchmark, planner_of(benchmark), ())
    if len(benchmarks) < 2:
        only = f"only {benchmarks[0].name} can be run" if benchmarks else "nothing can be run"
        raise InvalidInput(
            f"{only}, but taking turns needs two", where=WHERE, remedy="name another one, or leave --turns out"
        )


def barrier_of_turns(run_folder: str, block: int, *, size: int, rank: int, turn_s: float) -> JobBarrier:
    return JobBarrier(folder=f"{run_folder}/.barrier/turns.{block}", size=size, rank=rank, turn_s=turn_s)

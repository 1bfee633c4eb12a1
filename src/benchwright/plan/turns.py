"""Benchmarks that run at the same time and take turns: the launches of a block are started together.

On a machine whose speed wanders within seconds, launches one after the other say more about the moment than about the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Barrier, Job
from benchwright.core.model import Model, ModelScript
from benchwright.plan.process_slots import Seat

WHERE = "--turns"


def started_together(launches: Sequence[tuple[Job, ...]]) -> list[list[tuple[Job, ...]]]:
    """The launches in their order, those that take turns with each other in one group."""
    groups: list[list[tuple[Job, ...]]] = []
    for folder, group in groupby(launches, _place_of_turns):
        if folder is None:
            groups += [[launch] for launch in group]
        else:
            groups.append(list(group))
    return groups


def _place_of_turns(launch: tuple[Job, ...]) -> str | None:
    barrier = launch[0].barrier
    return barrier.folder if barrier is not None and barrier.turn_s is not None else None


def refuse_turns(benchmark: Benchmark, seats: Sequence[Seat]) -> None:
    """InvalidInput for what cannot take turns: a turn begins and ends between two steps of one loop in one process."""
    folder = benchmark.folder
    if isinstance(benchmark.workload, Model | ModelScript):
        what = "models of scripts cannot take turns yet"
    elif len(seats) > 1 or any(seat.machines > 1 for seat in seats):
        what = f"{benchmark.name} is measured by several processes, which cannot take turns"
    elif folder is not None and folder.launcher is not None:
        what = f"{benchmark.name} is started by {folder.launcher.name}, whose processes cannot take turns"
    elif folder is not None and (folder.voir is not None or folder.serving is not None):
        what = (
            f"{benchmark.name} is run by {'voir' if folder.voir is not None else 'a server'}, which cannot take turns"
        )
    elif benchmark.metrics:
        what = f"{benchmark.name} prints its numbers by its own clock, which counts the others' turns too"
    else:
        return
    raise InvalidInput(what, where=WHERE, remedy="leave --turns out; --interleave alternates whole launches")


def refuse_too_few(benchmarks: Sequence[Benchmark]) -> None:
    """InvalidInput where there is nobody to take turns with."""
    for benchmark in benchmarks:
        refuse_turns(benchmark, ())
    if len(benchmarks) < 2:
        only = f"only {benchmarks[0].name} can be run" if benchmarks else "nothing can be run"
        raise InvalidInput(f"{only}, and turns need two", where=WHERE, remedy="name another one, or leave --turns out")


def barrier_of_turns(run_folder: str, block: int, *, size: int, rank: int, turn_s: float) -> Barrier:
    return Barrier(folder=f"{run_folder}/.barrier/turns.{block}", size=size, rank=rank, turn_s=turn_s)

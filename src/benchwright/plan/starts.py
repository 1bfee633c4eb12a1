"""Which processes are started warm, forked from one that has imported what they need; and which before their turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, JobTurn
from benchwright.core.note import Note
from benchwright.options.table import Options

# Forks of one process have the same layout in memory, which is one of the things that differ between launches. So launches
# of a benchmark come from this many processes in turn.
_LAYOUTS = 4


MOST_AHEAD = 5  # processes at a time: one is measured; those before it are checked, those after it start up
_LEAST_CORES = 8


def may_start_ahead(benchmark: Benchmark, options: Options) -> bool:
    """Whether its launches may start up while others are measured, as far as it and the options are concerned."""
    hooks, placed = benchmark.hooks, benchmark.placement.cores is not None
    hooked = any(hook is not None for hook in (hooks.setup, hooks.prepare, hooks.cleanup))
    alone = options.up_to or options.turns is not None or options.on is not None
    return options.overlap and not (hooked or placed or alone)


def overlap_notes(launches: Sequence[tuple[Job, ...]], options: Options) -> list[Note]:
    """That `--overlap` was asked for and does nothing."""
    if not options.overlap or not launches or any(job.turn is not None for jobs in launches for job in jobs):
        return []
    text = f"--overlap has no effect here: it is for several models of zoos on a GPU, and needs {_LEAST_CORES} cores"
    return [Note(text=text)]


def with_turns_ahead(launches: Sequence[tuple[Job, ...]], usable_cores: Sequence[int]) -> list[tuple[Job, ...]]:
    """Numbers the launches. One half of the cores is for the one whose turn it is,
    the other for launches that start up or are checked. If a launch cannot wait for its turn, or cores are few, none starts
    early."""
    fit = all(len(jobs) == 1 and jobs[0].turn and not (jobs[0].cooldown_s or jobs[0].wait_s) for jobs in launches)
    if not fit or len(usable_cores) < _LEAST_CORES:
        return [tuple(msgspec.structs.replace(job, turn=None) for job in jobs) for jobs in launches]
    middle = len(usable_cores) // 2
    measured, aside = tuple(usable_cores[:middle]), tuple(usable_cores[-middle:])
    made: list[tuple[Job, ...]] = []
    for number, job in enumerate(_in_order_of_starts([job for (job,) in launches])):
        turn = JobTurn(folder=job.turn.folder if job.turn else "", place=number, cores=measured)
        made.append((msgspec.structs.replace(job, turn=turn, cores=aside),))
    return made


def _in_order_of_starts(jobs: Sequence[Job]) -> list[Job]:
    """Jobs of one round that can share warm processes come one after another: several run at a time, each from another warm
    process, so a change from one library to another costs as many starts."""
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(job.warm for job in jobs))}
    ordered = sorted(jobs, key=lambda job: (job.launch or 0, kinds[job.warm]))
    return [msgspec.structs.replace(job, position=position) for position, job in enumerate(ordered)]


def with_shared_starts(
    launches: Sequence[tuple[Job, ...]], options: Options, *, goes_on: bool = False
) -> list[tuple[Job, ...]]:
    """Without warm starts where none are wanted, or where no two launches could share one. `goes_on`: these are not the
    first launches of their run, so each may share its start with an earlier or later one.

    Launches that decide an A/B are independent of each other in all they can be, so they are started afresh.
    """
    never = options.cold or options.decision is not None or options.turns is not None
    shared = Counter(_start(jobs[0]) for jobs in launches if jobs and jobs[0].warm and not never)

    def is_warm(jobs: tuple[Job, ...]) -> bool:
        return len(jobs) == 1 and jobs[0].barrier is None and shared[_start(jobs[0])] > (not goes_on)

    return [tuple(map(_warm if is_warm(jobs) else _cold, jobs)) for jobs in launches]


def _start(job: Job) -> Hashable:
    """The key shared by jobs that can use the same warm process."""
    env = tuple(sorted(job.env.items(), key=str))
    return job.node, job.argv[:1], job.warm, job.cwd, job.cores, job.devices, env, _layout(job)


def _layout(job: Job) -> int:
    return (job.launch or 0) % _LAYOUTS


def _warm(job: Job) -> Job:
    return msgspec.structs.replace(job, layout=_layout(job)) if _layout(job) else job


def _cold(job: Job) -> Job:
    return msgspec.structs.replace(job, warm=()) if job.warm else job

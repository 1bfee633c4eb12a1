"""Which processes are started warm: forked from one that has imported what they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import msgspec

from benchwright.core.job import Job
from benchwright.core.settings import RunSettings

# Forks of one process have the same layout in memory, which is one of the things that differ between launches. So launches
# of a benchmark come from this many processes in turn.
_LAYOUTS = 4


def with_shared_starts(launches: Sequence[tuple[Job, ...]], settings: RunSettings) -> list[tuple[Job, ...]]:
    """Without warm starts where none are wanted, or where no two launches could share one.

    Launches that decide an A/B are independent of each other in all they can be, so they are started afresh.
    """
    never = settings.cold or settings.decision is not None or settings.turn_s is not None
    shared = Counter(_start(jobs[0]) for jobs in launches if jobs and jobs[0].warm and not never)

    def is_warm(jobs: tuple[Job, ...]) -> bool:
        return len(jobs) == 1 and jobs[0].barrier is None and shared[_start(jobs[0])] > 1

    return [tuple(map(_warm if is_warm(jobs) else _cold, jobs)) for jobs in launches]


def _start(job: Job) -> Hashable:
    """What jobs that share a warm process have in common."""
    env = tuple(sorted(job.env.items(), key=str))
    return job.node, job.argv[:1], job.warm, job.cwd, job.cores, job.devices, env, _layout(job)


def _layout(job: Job) -> int:
    return (job.repeat or 0) % _LAYOUTS


def _warm(job: Job) -> Job:
    return msgspec.structs.replace(job, layout=_layout(job)) if _layout(job) else job


def _cold(job: Job) -> Job:
    return msgspec.structs.replace(job, warm=()) if job.warm else job

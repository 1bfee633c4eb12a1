"""The supervisor's part in the barrier: says that a process has ended, or that it is done if it cannot say so itself."""

from __future__ import annotations

import os

from benchwright.agent.supervise.pause_neighbours import QUIET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.core.job import Job, JobBarrier


def leave_barrier(job: Job) -> None:
    """Create `gone-<rank>`, so that the others do not wait for it; hold nobody back any more."""
    if job.barrier is not None:
        create_mark(job.barrier.folder, f"gone-{job.barrier.rank}")
    if job.turn is not None:
        try:
            os.unlink(os.path.join(job.turn.folder, f"{QUIET}{job.turn.place}"))
        except OSError:
            pass  # it did so itself


def say_done(barrier: JobBarrier | None) -> None:
    """Create `done-<rank>`: the program was measured enough, and runs on for the others."""
    if barrier is not None:
        create_mark(barrier.folder, f"done-{barrier.rank}")


def all_done(barrier: JobBarrier | None) -> bool:
    """Whether all were measured enough or are gone."""
    if barrier is None:
        return True
    try:
        names = os.listdir(barrier.folder)
    except OSError:
        return True
    ranks = {name.partition("-")[2] for name in names if name.startswith(("done-", "gone-"))}
    return len(ranks) >= barrier.size


def create_mark(folder: str, name: str) -> None:
    """An empty file by which processes that share the folder learn something."""
    try:
        os.makedirs(folder, exist_ok=True)
        os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError:
        pass  # the folder is gone, and with it all who waited there

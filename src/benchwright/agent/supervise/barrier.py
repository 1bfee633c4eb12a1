"""The supervisor's part in the barrier: says that a process has ended, or that it is done if it cannot say so itself."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.core.job import JobBarrier


def leave_barrier(barrier: JobBarrier | None) -> None:
    """Create `gone-<rank>`, so that the others do not wait for it."""
    _create(barrier, "gone")


def say_done(barrier: JobBarrier | None) -> None:
    """Create `done-<rank>`: the program was measured enough, and runs on for the others."""
    _create(barrier, "done")


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


def _create(barrier: JobBarrier | None, what: str) -> None:
    if barrier is None:
        return
    try:
        os.makedirs(barrier.folder, exist_ok=True)
        os.close(os.open(os.path.join(barrier.folder, f"{what}-{barrier.rank}"), os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError:
        pass  # the folder is gone, and with it all who waited there

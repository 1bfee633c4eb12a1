"""The supervisor's part in the barrier: saying that a process will not come any more."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.domain.job import Barrier


def leave_barrier(barrier: Barrier | None) -> None:
    """Create `gone-<rank>`, so that the others do not wait for the dead."""
    if barrier is None:
        return
    try:
        os.makedirs(barrier.folder, exist_ok=True)
        os.close(os.open(os.path.join(barrier.folder, f"gone-{barrier.rank}"), os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError:
        pass  # the folder is gone: so is everybody who waited there

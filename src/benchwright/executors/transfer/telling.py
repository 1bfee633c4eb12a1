"""Says how far a push is, without saying it for every file."""

from __future__ import annotations

from benchwright.executors.base import Listener
from benchwright.executors.boards.base import Progress
from benchwright.executors.observer import Observer

_SMALL_BYTES = 10_000_000  # takes a moment
_STEPS = 20


def telling(listener: Listener, name: str) -> Progress:
    """Tells `listener`, if it listens to such things, about a push to the machine called `name`."""
    told = -1

    def tell(done: int, total: int) -> None:
        nonlocal told
        step = done * _STEPS // max(total, 1)
        if isinstance(listener, Observer) and total >= _SMALL_BYTES and step > told:
            told = step
            listener.on_step(name, f"sending {done / 1e6:.0f} of {total / 1e6:.0f} MB")

    return tell

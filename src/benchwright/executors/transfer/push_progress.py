"""Progress of a push, in a few steps instead of one for each file."""

from __future__ import annotations

from benchwright.executors.base import Listener
from benchwright.executors.boards.base import Progress
from benchwright.executors.observer import Observer

_SMALL_BYTES = 10_000_000  # takes a moment
_STEPS = 20


def push_progress(listener: Listener, name: str) -> Progress:
    """Reports a large push to the machine called `name`, if `listener` is an Observer."""
    last = -1

    def report(done: int, total: int) -> None:
        nonlocal last
        step = done * _STEPS // max(total, 1)
        if isinstance(listener, Observer) and total >= _SMALL_BYTES and step > last:
            last = step
            listener.on_step(name, f"sending {done / 1e6:.0f} of {total / 1e6:.0f} MB")

    return report

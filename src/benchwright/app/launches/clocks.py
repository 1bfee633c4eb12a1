"""`--lock-clocks`: the clocks of this machine's GPUs held at one frequency for a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchwright.core.errors import InvalidInput
from benchwright.executors.observer import Observer

OPTION = "--lock-clocks"


@contextmanager
def locked_clocks(wanted: str | None, on: str | None, observer: Observer) -> Iterator[dict[str, str]]:
    """The labels of a run whose clocks are locked; none if nobody wants that. InvalidInput where it is not possible."""
    if wanted is None:
        yield {}
        return
    from benchwright.agent.machine.clock_lock import AUTO, CannotLock, ClockLock

    if wanted != AUTO and not (wanted.isdigit() and 0 < int(wanted) < 100_000):
        raise InvalidInput(f"'{wanted}' is no clock", where=OPTION, remedy="write a number of MHz, or nothing")
    if on not in (None, "local"):
        raise InvalidInput("clocks can be locked on this machine only", where=OPTION, remedy=f"run it on {on} itself")
    try:
        lock = ClockLock(wanted)
    except CannotLock as error:
        raise InvalidInput(
            f"the clocks of the GPUs cannot be locked: {error}", where=OPTION, remedy="leave it out"
        ) from None
    try:
        yield {"gpu_clock_mhz": ",".join(map(str, dict.fromkeys(lock.clocks)))}
    finally:
        if (trouble := lock.close()) is not None:
            observer.on_trouble(trouble)

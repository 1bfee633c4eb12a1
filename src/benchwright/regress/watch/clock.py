"""When the next pass of a watch, or run of a series, begins, and when there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from benchwright.regress.watch.state import StatusFile
from benchwright.regress.watch.work import WatchClock

_LOOK_S = 1.0  # how often it looks for a reason to stop while it waits


class PatientClock:
    """Time, and whether SIGTERM or the status file asks to stop."""

    def __init__(self, asked: threading.Event, status_file: StatusFile | None = None) -> None:
        self._asked = asked
        self._status_file = status_file

    def now(self) -> float:
        return time.monotonic()

    def is_stopping(self) -> bool:
        return self._asked.is_set() or (self._status_file is not None and self._status_file.asks_to_stop())

    def wait(self, seconds: float) -> None:
        until = self.now() + seconds
        while (left := until - self.now()) > 0 and not self.is_stopping():
            time.sleep(min(left, _LOOK_S))  # waiting for the event would hold the lock that a signal's handler needs


def at_intervals(
    once: Callable[[], object], clock: WatchClock, interval_s: float | None, on_waiting: Callable[[float], None]
) -> None:
    """Calls `once`, and with an interval again and again, from one beginning to the next, until `clock` says to stop."""
    while not clock.is_stopping():
        begun = clock.now()
        once()
        if interval_s is None:
            return
        left = begun + interval_s - clock.now()
        if left > 0 and not clock.is_stopping():
            on_waiting(left)
            clock.wait(left)

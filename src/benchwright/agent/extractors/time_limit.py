"""Cuts off a match that takes too long.

The engine of `re` looks for signals while it backtracks, so a timer's handler that raises ends a match. The timer
counts CPU time of this process (ITIMER_VIRTUAL): a busy machine on which it waits for its turn cuts nothing off,
and nobody else's alarm is disturbed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
_OUR_CODE = __name__.rpartition(".")[0]  # this package: the engine runs inside a frame of it
_AGAIN_S = 0.005


class CutOff(Exception):
    """The work took longer than its limit."""


class TimeLimit:
    """`with limit: limit.run(work)`: signal handler and timer are ours inside, and put back after.

    Only the main thread can receive signals. Elsewhere `with` raises RuntimeError: no pattern of a user
    ever runs without a limit.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_armed = False
        self._handler_before: Any = None
        self._timer_before = (0.0, 0.0)

    def __enter__(self) -> TimeLimit:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                "a log is scanned in the main thread only, where a pattern that never ends can be stopped"
            )
        self._handler_before = signal.signal(signal.SIGVTALRM, self._on_signal)
        self._timer_before = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # None: it was not set from Python, and cannot be put back from there.
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if self._handler_before is None else self._handler_before)
        if self._timer_before[0]:
            signal.setitimer(signal.ITIMER_VIRTUAL, *self._timer_before)

    def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, or CutOff after the limit."""
        try:
            self._is_armed = True
            signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)
            result = work()
            self._is_armed = False
            return result
        finally:
            self._is_armed = False  # from here on a signal that is late is ignored
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._is_armed:
            return
        if frame is None or not frame.f_globals.get("__name__", "").startswith(_OUR_CODE):
            # Somebody else's code, called from ours, may hold a lock that an exception would leave held for ever.
            signal.setitimer(signal.ITIMER_VIRTUAL, _AGAIN_S)
            return
        self._is_armed = False
        raise CutOff

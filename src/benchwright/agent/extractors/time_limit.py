"""Stops a match that takes too long.

Why: a pattern such as `(a+)+b` can take years on one line of a log, and `re` has no time limit of its own. Its engine checks
for signals while it backtracks, so a signal handler that raises ends the match. The timer counts this process's CPU time
(ITIMER_VIRTUAL, SIGVTALRM): waiting for a core on a busy machine does not count, and nobody else's alarm is disturbed.
Limits: the main thread only, because signals arrive there; and code that is not ours is not interrupted, because it may hold
a lock, so an extractor of another package ends at its next line of Python in this package.
Switch: BENCHWRIGHT_MATCH_LIMIT=SECONDS, for one line; `off` sets no timer, and then such a pattern never ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
_OUR_CODE = __name__.rpartition(".")[0]  # this package: the engine runs inside a frame of it
_AGAIN_S = 0.005
SWITCH = "BENCHWRIGHT_MATCH_LIMIT"


def chosen_limit_s(default_s: float) -> float | None:
    """What the switch says; None: no limit."""
    text = os.environ.get(SWITCH, "")
    if text == "off":
        return None
    try:
        return max(float(text), 0.001)
    except ValueError:
        return default_s


class CutOff(Exception):
    """The work took longer than its limit."""


class TimeLimit:
    """`with limit: limit.run(work)`: signal handler and timer are ours inside, and put back after.

    Outside the main thread `with` raises RuntimeError: no pattern of a user runs without a limit by accident.
    `seconds`: None: no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._is_armed = False
        self._handler_before: Any = None
        self._timer_before = (0.0, 0.0)

    def __enter__(self) -> TimeLimit:
        if self._seconds is None:
            return self
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
        if self._seconds is None:
            return
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # None: it was not set from Python, and cannot be put back from there.
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if self._handler_before is None else self._handler_before)
        if self._timer_before[0]:
            signal.setitimer(signal.ITIMER_VIRTUAL, *self._timer_before)

    def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, or CutOff after the limit."""
        if self._seconds is None:
            return work()
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
            # Code that is not ours may hold a lock, which an exception would leave locked forever.
            signal.setitimer(signal.ITIMER_VIRTUAL, _AGAIN_S)
            return
        self._is_armed = False
        raise CutOff

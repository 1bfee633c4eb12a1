"""Ends a job's processes: TERM, and KILL after a grace period, until none is left."""

from __future__ import annotations

import os
import signal

from benchwright.agent.processes.process_tree import signal_descendants

_NS = 1_000_000_000


class Takedown:
    """Ends all descendants of this process. Call `advance` until no child is left."""

    def __init__(
        self, grace_s: float, now_ns: int, *, wait_s: float = 0.0, spare: frozenset[int] = frozenset()
    ) -> None:
        """`wait_s`: how long they may take to end by themselves. `spare`: children that are no part of the job."""
        self._spare = spare
        self._grace_ns = int(grace_s * _NS)
        self._ask_ns = now_ns + int(wait_s * _NS)
        self._kill_ns: int | None = None
        self.began_ns = now_ns
        self.asked: set[int] = set()  # pids that were sent TERM
        self.killed: set[int] = set()  # pids that were sent KILL

    def hurry(self) -> None:
        """The grace period is over."""
        self._grace_ns = 0
        self._ask_ns = 0
        if self._kill_ns is not None:
            self._kill_ns = 0

    def advance(self, now_ns: int) -> None:
        """Send what is due now."""
        if self._kill_ns is None:
            if now_ns < self._ask_ns:
                return
            self.asked.update(stat.pid for stat in signal_descendants(os.getpid(), signal.SIGTERM, self._spare))
            # A stopped process handles TERM only once it is continued.
            signal_descendants(os.getpid(), signal.SIGCONT, self._spare)
            self._kill_ns = now_ns + self._grace_ns
        if now_ns >= self._kill_ns:
            self.killed.update(stat.pid for stat in signal_descendants(os.getpid(), signal.SIGKILL, self._spare))

    @property
    def next_ns(self) -> int:
        """When the next signal is due."""
        return self._ask_ns if self._kill_ns is None else self._kill_ns

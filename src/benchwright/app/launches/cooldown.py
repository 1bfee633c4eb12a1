"""Pauses between launches: a machine cools down, a power meter settles. They are no part of any measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchwright.core.job import Job
from benchwright.core.numbers.quantities import format_duration
from benchwright.executors.observer import Observer

_LOOK_S = 0.1  # how often to see whether the run was asked to stop
_WORTH_TELLING_S = 1.0
_NAME = "pause"


class Cooldown:
    """Remembers when the last launch ended. A cooldown counts from then, so time spent otherwise is not waited again."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._ended: float | None = None

    def ended(self) -> None:
        """A launch has just ended."""
        self._ended = self._clock()

    def wait(self, jobs: Sequence[Job], stopped: Callable[[], bool], observer: Observer) -> None:
        """As long as `jobs` want, or until the run is asked to stop."""
        now = self._clock()
        cooled = now if self._ended is None else self._ended + max((job.cooldown_s for job in jobs), default=0.0)
        until = max(cooled, now) + max((job.wait_s for job in jobs), default=0.0)
        if until - now >= _WORTH_TELLING_S:
            observer.on_step(_NAME, f"waiting {format_duration(until - now)} before {jobs[0].id}")
        while not stopped() and (left := until - self._clock()) > 0:
            self._sleep(min(left, _LOOK_S))
        if until - now >= _WORTH_TELLING_S:
            observer.on_step_done(_NAME)

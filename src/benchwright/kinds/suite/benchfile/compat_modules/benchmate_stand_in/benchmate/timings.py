"""A timer for loops whose steps are not those of a loader."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import unknown_names
from .toggles import earlystop_count


class StepTimer:
    """`step` adds up work, `end` pushes the rate since the last `end`."""

    def __init__(self, pusher: Callable[..., Any], sync: Callable[[], Any] = lambda: None) -> None:
        self.pusher, self.sync = pusher, sync
        self.size, self.observations = 0, 0
        self.total = earlystop_count(skip=5)
        self.started_s = time.perf_counter()

    def step(self, step_size: int) -> None:
        self.size += step_size

    def end(self) -> None:
        self.sync()
        now_s = time.perf_counter()
        self.pusher(rate=self.size / (now_s - self.started_s), units="items/s", task="train")
        self.pusher(progress=(self.observations, self.total), task="early_stop")
        self.observations += 1
        self.size, self.started_s = 0, now_s

    def log(self, **metric: Any) -> None:
        self.pusher(**metric)


__getattr__ = unknown_names(__name__)

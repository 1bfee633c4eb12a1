"""Work that is too short for a step of its own is done several times in one."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from workload.devices import synchronize

STEP_S = 0.002  # a step takes at least this, so that starting and timing it costs nothing beside it
MOST = 1 << 16


def times_a_step(work: Callable[[], Any], device: torch.device, at_least_s: float = STEP_S) -> int:
    """How often `work` is to be done in one step: a power of two, found by trying."""
    for _ in range(3):
        work()
    synchronize(device)
    count = 1
    while count < MOST:
        began = perf_counter()
        for _ in range(count):
            work()
        synchronize(device)
        if perf_counter() - began >= at_least_s:
            break
        count *= 2
    return count

"""How the ranks of a distributed program leave their loop at the same step.

Each rank judges by its own steps, so each would stop at another one, and the rest would wait for it in a collective for
ever. Rank 0 therefore allows steps ahead of time, in the store through which the ranks found each other, and nobody
goes beyond. Once every rank has measured enough it allows no more, and all stop at the last step allowed.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Callable, Mapping, Optional, Protocol

FIRST_STEPS = 2  # allowed without asking
AHEAD_NS = 500_000_000  # so much work is allowed ahead of time: nobody has to wait for it
PATIENCE_S = 5.0  # rank 0 may be writing a checkpoint, or have left: whoever waited so long allows itself more
POLL_INTERVAL_S = 0.001
FINAL = 1 << 48  # added to the number of steps when it is the last word


class Store(Protocol):
    """What is needed of a `torch.distributed.Store`."""

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter that all ranks share, and returns the sum."""


class Agreement:
    """This rank's part in it. Called between chunks; every method may raise what the store raises."""

    def __init__(self, store: Store, rank: int, size: int, name: str, patience_s: float = PATIENCE_S) -> None:
        self._add: Callable[[str, int], int] = store.add
        self._leads = rank == 0
        self._size = size
        self._lease_key, self._done_key = f"benchprobe/{name}/lease", f"benchprobe/{name}/done"
        self._patience_s = patience_s
        self._lease = FIRST_STEPS
        self._final = False
        self._ask_below = FIRST_STEPS  # few steps left: time to ask for more
        self._done = False
        self._began_ns = time.perf_counter_ns()

    def left(self, steps: int) -> int:
        """How many steps may follow the `steps` so far before `renew` must be called."""
        return self._lease - steps

    def say_done(self) -> None:
        """This rank has measured enough."""
        self._done = True
        self._add(self._done_key, 1)

    def renew(self, steps: int, others_done: Callable[[], bool]) -> bool:
        """Asks for more steps where few are left; False: everybody stops here.

        `others_done`: whether those outside of this program who are measured together with it have enough too.
        """
        if self._leads and self._done and not self._final and self._all_ranks_done() and others_done():
            self._learn(self._add(self._lease_key, FINAL))
        if self.left(steps) < self._ask_below and not self._final:
            self._ask(steps)
        return self.left(steps) > 0

    def _all_ranks_done(self) -> bool:
        return self._add(self._done_key, 0) >= self._size

    def _ask(self, steps: int) -> None:
        ahead = self._worth(steps)
        give_up = time.monotonic() + self._patience_s
        self._learn(self._add(self._lease_key, 0))
        if self._leads:
            self._extend(steps + ahead)
        while self.left(steps) <= 0 and not self._final:
            time.sleep(POLL_INTERVAL_S)
            self._learn(self._add(self._lease_key, 0))
            if time.monotonic() > give_up:
                self._extend(2 * steps + ahead)
        self._ask_below = max(2, self.left(steps) // 2)

    def _extend(self, lease: int) -> None:
        more = lease - self._lease
        if more > 0 and not self._final:
            self._learn(self._add(self._lease_key, more))

    def _learn(self, value: int) -> None:
        self._final = value >= FINAL
        self._lease = FIRST_STEPS + value % FINAL

    def _worth(self, steps: int) -> int:
        elapsed_ns = max(1, time.perf_counter_ns() - self._began_ns)
        return max(2, min(math.ceil(steps * AHEAD_NS / elapsed_ns), 1 << 20))


def find_agreement(name: str, warmup: Mapping[str, Any], stop: Optional[Mapping[str, Any]]) -> Optional[Agreement]:
    """None where ranks need not agree: there is one only, or all stop at the same step because it is given."""
    if stop is None or (stop.get("steps") is not None and warmup.get("steps") is not None):
        return None
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    size = distributed.get_world_size()
    if size < 2:
        return None
    store = distributed.distributed_c10d._get_default_store()
    return Agreement(store, distributed.get_rank(), size, name)

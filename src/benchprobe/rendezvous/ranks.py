"""How the ranks of a distributed program leave their loop at the same step.

Each rank judges its own steps, so each would stop at a different one, and the others would wait in a collective forever. So
rank 0 leases steps ahead of time, in the store through which the ranks found each other, and no rank goes further. Once
every rank is done it leases no more, and all stop at the last leased step.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Callable, Mapping, NamedTuple, Optional, Protocol

FIRST_STEPS = 2  # leased without asking
AHEAD_NS = 500_000_000  # work leased ahead, so that nobody has to wait
PATIENCE_S = 5.0  # rank 0 may be writing a checkpoint, or be gone: then a rank extends the lease itself
POLL_INTERVAL_S = 0.001
FINAL = 1 << 48  # added to the number of steps when it is final


class RankStore(Protocol):
    """The part of a `torch.distributed.Store` that is needed."""

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter shared by all ranks and returns the sum."""


class RankLease:
    """This rank's view of the lease. Called between chunks; every method may raise what the store raises."""

    def __init__(self, store: RankStore, rank: int, size: int, name: str, patience_s: float = PATIENCE_S) -> None:
        self._add: Callable[[str, int], int] = store.add
        self._leads = rank == 0
        self._size = size
        self._lease_key, self._done_key = f"benchprobe/{name}/lease", f"benchprobe/{name}/done"
        self._patience_s = patience_s
        self._lease = FIRST_STEPS
        self._ask_below = FIRST_STEPS  # few steps left: time to ask for more
        self._done = self._final = False
        self._began_ns = time.perf_counter_ns()

    def left(self, steps: int) -> int:
        """How many steps may follow the `steps` so far before `renew` must be called."""
        return self._lease - steps

    def say_done(self) -> None:
        """This rank has measured enough."""
        self._done = True
        self._add(self._done_key, 1)

    def renew(self, steps: int, others_done: Callable[[], bool]) -> bool:
        """Asks for more steps if few are left; False: everybody stops here.

        `others_done`: whether the other programs measured together with this one are done, too.
        """
        may_end = self._leads and self._done and not self._final
        if may_end and self._add(self._done_key, 0) >= self._size and others_done():
            self._learn(self._add(self._lease_key, FINAL))
        if self.left(steps) < self._ask_below and not self._final:
            self._ask(steps)
        return self.left(steps) > 0

    def _ask(self, steps: int) -> None:
        elapsed_ns = max(1, time.perf_counter_ns() - self._began_ns)
        ahead = max(2, min(math.ceil(steps * AHEAD_NS / elapsed_ns), 1 << 20))
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


class RankGroup(NamedTuple):
    """The ranks of a distributed program: their store, this rank, and their number."""

    store: RankStore
    rank: int
    size: int


def distributed_group() -> Optional[RankGroup]:
    """That of torch.distributed; None for a single rank."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    size = distributed.get_world_size()
    if size < 2:
        return None
    return RankGroup(distributed.distributed_c10d._get_default_store(), distributed.get_rank(), size)


def find_lease(name: str, warmup: Mapping[str, Any], stop: Optional[Mapping[str, Any]]) -> Optional[RankLease]:
    """None if ranks need not agree: there is only one, or the last step is given."""
    if stop is None or (stop.get("steps") is not None and warmup.get("steps") is not None):
        return None
    group = distributed_group()
    return None if group is None else RankLease(*group, name)

"""The ranks of a program run by voir leave at the same step, if all of them are instrumented.

Often only one rank is: then nobody answers the others' questions, and the program has to be ended from outside.
"""

from __future__ import annotations

import sys
import time
from typing import Callable, Optional, Tuple

from benchprobe.rendezvous.ranks import POLL_INTERVAL_S, Agreement, Store

JOIN_S = 2.0  # at the first step's end ranks are as close together as a collective makes them
ALL, SOME = 1, 2
Group = Tuple[Store, int, int]  # what the ranks share, which this is, and how many they are


def distributed_group() -> Optional[Group]:
    """That of torch.distributed; None without one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    size = distributed.get_world_size()
    if size < 2:
        return None
    return distributed.distributed_c10d._get_default_store(), distributed.get_rank(), size


def _wait(condition: Callable[[], bool], limit_s: float) -> bool:
    give_up = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(POLL_INTERVAL_S)
    return True


class RankAgreement:
    """This rank's part in it; joined when its first step ends. Nothing here raises."""

    def __init__(
        self, name: str, find: Callable[[], Optional[Group]] = distributed_group, patience_s: float = JOIN_S
    ) -> None:
        self._name = name
        self._find = find
        self._patience_s = patience_s
        self._steps = -1  # the first one ended before it was joined
        self._store: Optional[Store] = None
        self._agreement: Optional[Agreement] = None
        self._lost = False
        self.is_alone = False  # the other ranks exist and take no part

    @property
    def leaves_by_step(self) -> bool:
        """Whether `go_on` says when to leave."""
        return self._agreement is not None or self._lost

    def go_on(self, others_done: Callable[[], bool]) -> bool:
        """A step has ended. False: all ranks leave here."""
        self._steps += 1
        try:
            if self._steps == 0:
                self._join(self._find())
            return self._agreement is None or self._agreement.renew(self._steps, others_done)
        except Exception as error:
            self._lose(error)
            return True

    def say_done(self) -> None:
        """This rank has been measured enough."""
        try:
            if self._agreement is not None:
                self._agreement.say_done()
            elif self._store is not None:
                self._store.add(f"benchprobe/{self._name}/done", 1)
        except Exception as error:
            self._lose(error)

    def _join(self, group: Optional[Group]) -> None:
        """Rank 0 sees whether everybody is there, and tells."""
        if group is None:
            return
        self._store, rank, size = group
        here, told = f"benchprobe/{self._name}/here", f"benchprobe/{self._name}/told"
        add = self._store.add
        add(here, 1)
        if rank == 0:
            everybody = _wait(lambda: add(here, 0) >= size, self._patience_s)
            answer = add(told, ALL if everybody else SOME)
        else:
            _wait(lambda: add(told, 0) > 0, self._patience_s + 1)
            answer = add(told, 0)
        if answer == ALL:
            self._agreement = Agreement(self._store, rank, size, self._name)
        else:
            self.is_alone = True

    def _lose(self, error: Exception) -> None:
        self._agreement = None
        self._lost = True
        text = f"benchprobe: the other ranks cannot be asked ({type(error).__name__}: {error})"
        print(f"{text}; the program runs to its own end", file=sys.stderr)

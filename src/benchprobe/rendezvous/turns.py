"""Taking turns: of several processes on one machine, only one at a time runs its loop.

A machine that is faster now and slower a minute later favours whoever runs now. Processes that take turns of half a second see
the same machine. In addition to the files of `barrier`, in the same folder:

turn           the rank whose turn it is; rank 0 begins
wake-<rank>    a pipe on which that process is woken; the file `turn` is the truth
"""

from __future__ import annotations

import os
import select
import time
from time import perf_counter_ns
from typing import Any, Dict, Optional, Set

from benchprobe.config import Rendezvous
from benchprobe.rendezvous.barrier import Meeting

POLL_INTERVAL_S = 0.05  # how soon the turn of a process that died is taken over


class TurnMeeting(Meeting):
    """This process's part in it. A pause belongs to no step and to no stop rule."""

    def __init__(self, barrier: Rendezvous, turn_s: float, number: int = 0) -> None:
        super().__init__(barrier, number)
        self._turn_s = turn_s
        self._began_ns: Optional[int] = None  # when its turn began; None: it is somebody else's
        self._pipe = -1
        self._turns = self._paused_ns = 0

    def wait_until_all_ready(self) -> None:
        """And until the first turn."""
        path = self._path(f"wake{self._round}-{self._barrier.rank}")
        os.mkfifo(path, 0o600)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        super().wait_until_all_ready()
        self._take()

    def let_others(self, now_ns: int) -> int:
        if self._began_ns is None or now_ns - self._began_ns < self._turn_s * 1e9 or not self._pass_on():
            return 0
        before_ns = perf_counter_ns()
        self._take()
        paused_ns = perf_counter_ns() - before_ns
        self._paused_ns += paused_ns
        return paused_ns

    def say_done(self) -> None:
        self._pass_on()
        super().say_done()

    def all_done(self) -> bool:
        """Waits for it: whoever is done must not run while the others are measured."""
        while not super().all_done():
            time.sleep(POLL_INTERVAL_S)
        return True

    def leave(self) -> None:
        self._pass_on()

    def told(self) -> Dict[str, Any]:
        return {"turn_s": self._turn_s, "turns": self._turns, "paused_ns": self._paused_ns}

    def _take(self) -> None:
        while not self._is_mine():
            woken, _, _ = select.select([self._pipe], [], [], POLL_INTERVAL_S)
            if woken:
                os.read(self._pipe, 64)
        self._turns += 1
        self._began_ns = perf_counter_ns()

    def _pass_on(self) -> bool:
        """The turn goes to the next one; False: it was not ours, or nobody else is left."""
        if self._began_ns is None:
            return False
        following = self._after(self._barrier.rank, self._out())
        if following == self._barrier.rank:
            return False
        self._began_ns = None
        self._write(following)
        try:
            pipe = os.open(self._path(f"wake{self._round}-{following}"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return True  # it has ended: somebody will take its turn over
        try:
            os.write(pipe, b"!")
        finally:
            os.close(pipe)
        return True

    def _is_mine(self) -> bool:
        holder = self._holder()
        if holder == self._barrier.rank:
            return True
        out = self._out()
        if holder in out and self._after(holder, out) == self._barrier.rank:
            self._write(self._barrier.rank)
            return True
        return False

    def _holder(self) -> int:
        try:
            with open(self._path(f"turn{self._round}"), encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return 0

    def _write(self, rank: int) -> None:
        aside = self._path(f"turn{self._round}.{self._barrier.rank}")
        with open(aside, "w", encoding="ascii") as file:
            file.write(str(rank))
        os.replace(aside, self._path(f"turn{self._round}"))

    def _out(self) -> Set[int]:
        """Those that will take no turn any more."""
        names = os.listdir(self._barrier.folder)
        out = (f"done{self._round}-", "gone-")
        return {int(name.partition("-")[2]) for name in names if name.startswith(out)}

    def _after(self, rank: int, out: Set[int]) -> int:
        size = self._barrier.size
        order = ((rank + step) % size for step in range(1, size + 1))
        return next((other for other in order if other not in out), self._barrier.rank)

    def _path(self, name: str) -> str:
        return os.path.join(self._barrier.folder, name)


def meeting_at(barrier: Rendezvous, number: int = 0) -> Meeting:
    """As it was asked for; `number`: how many meetings there were before."""
    if barrier.turn_s is None:
        return Meeting(barrier, number)
    return TurnMeeting(barrier, barrier.turn_s, number)

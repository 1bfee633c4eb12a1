"""Where processes that are measured together meet: files in a folder that they share.

ready-<rank>   warm, waiting to be measured
go             everybody is ready: measuring begins
done-<rank>    measured enough; keeps running so that the others are measured under the same load
gone-<rank>    that process has ended (made by its supervisor), so nobody waits for it

They may also take turns: only one at a time runs its loop. A machine that is faster now and slower a minute later favours
whoever runs now; processes that take turns of half a second see the same machine. For that, in the same folder:

turn           the rank whose turn it is; rank 0 begins
wake-<rank>    a pipe on which that process is woken; the file `turn` is the truth

A loop named "train" that begins after another loop was measured needs a second meeting: all names but `gone` then have the
number of that round behind them (`ready1-<rank>`).
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from time import perf_counter_ns
from typing import Any, Dict, Optional, Set

from benchprobe.config import Rendezvous

POLL_INTERVAL_S = 0.001
TURN_POLL_INTERVAL_S = 0.05  # how soon the turn of a process that died is taken over


class Meeting:
    """This process's part in a barrier. Every method may raise OSError: the folder may disappear."""

    def __init__(self, barrier: Rendezvous, number: int = 0) -> None:
        """`number`: which meeting of these processes it is; the first is 0."""
        self._barrier = barrier
        self._round = str(number) if number else ""

    def wait_until_all_ready(self) -> None:
        """Returns as soon as every process is ready or gone."""
        ready, go = f"ready{self._round}-", f"go{self._round}"
        self._create(f"{ready}{self._barrier.rank}")
        # Unlike os.path.exists, listing raises when the folder itself is gone, so that nobody waits forever.
        while go not in os.listdir(self._barrier.folder):
            if len(self._ranks(ready, "gone-")) >= self._barrier.size:
                self._create(go)
                return
            time.sleep(POLL_INTERVAL_S)

    def say_done(self) -> None:
        self._create(f"done{self._round}-{self._barrier.rank}")

    def let_others(self, now_ns: int) -> int:
        """Between two chunks of steps. Returns how long the others' turns took."""
        return 0

    def leave(self) -> None:
        """The process ends."""

    def details(self) -> Dict[str, Any]:
        """Details to report at the end."""
        return {}

    def all_done(self) -> bool:
        return len(self._finished()) >= self._barrier.size

    def _finished(self) -> Set[int]:
        return self._ranks(f"done{self._round}-", "gone-")

    def _ranks(self, *prefixes: str) -> Set[int]:
        names = os.listdir(self._barrier.folder)
        return {int(name.partition("-")[2]) for name in names if name.startswith(prefixes)}

    def _create(self, name: str) -> None:
        os.close(os.open(self._path(name), os.O_CREAT | os.O_WRONLY, 0o644))

    def _path(self, name: str) -> str:
        return os.path.join(self._barrier.folder, name)


class TurnMeeting(Meeting):
    """This process's part in taking turns. A pause belongs to no step and to no stop rule."""

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
            time.sleep(TURN_POLL_INTERVAL_S)
        return True

    def leave(self) -> None:
        self._pass_on()

    def details(self) -> Dict[str, Any]:
        return {"turn_s": self._turn_s, "turns": self._turns, "paused_ns": self._paused_ns}

    def _take(self) -> None:
        while not self._is_mine():
            if select.select([self._pipe], [], [], TURN_POLL_INTERVAL_S)[0]:
                os.read(self._pipe, 64)
        self._turns += 1
        self._began_ns = perf_counter_ns()

    def _pass_on(self) -> bool:
        """Passes the turn to the next process; False: it was not ours, or nobody else is left."""
        if self._began_ns is None:
            return False
        following = self._after(self._barrier.rank, self._finished())
        if following == self._barrier.rank:
            return False
        self._began_ns = None
        self._write(following)
        try:
            pipe = os.open(self._path(f"wake{self._round}-{following}"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return True  # it has ended: another process takes over its turn
        try:
            os.write(pipe, b"!")
        finally:
            os.close(pipe)
        return True

    def _is_mine(self) -> bool:
        holder = 0
        with suppress(FileNotFoundError), open(self._path(f"turn{self._round}"), encoding="ascii") as file:
            holder = int(file.read())
        if holder == self._barrier.rank:
            return True
        finished = self._finished()
        if holder in finished and self._after(holder, finished) == self._barrier.rank:
            self._write(self._barrier.rank)
            return True
        return False

    def _write(self, rank: int) -> None:
        aside = self._path(f"turn{self._round}.{self._barrier.rank}")
        with open(aside, "w", encoding="ascii") as file:
            file.write(str(rank))
        os.replace(aside, self._path(f"turn{self._round}"))

    def _after(self, rank: int, finished: Set[int]) -> int:
        size = self._barrier.size
        order = ((rank + step) % size for step in range(1, size + 1))
        return next((other for other in order if other not in finished), self._barrier.rank)


def meeting_at(barrier: Rendezvous, number: int = 0) -> Meeting:
    """The kind of meeting requested; `number`: how many meetings there were before."""
    if barrier.turn_s is None:
        return Meeting(barrier, number)
    return TurnMeeting(barrier, barrier.turn_s, number)

"""Where processes that are measured together meet: files in a folder that they share.

ready-<rank>   warm, waiting to be measured
go             everybody is ready: measuring begins
done-<rank>    measured enough; keeps running so that the others are measured under the same load
gone-<rank>    that process has ended (made by its supervisor), so nobody waits for the dead

A loop named "train" that begins after another loop was measured needs a second meeting: `ready`, `go` and `done` then
have the number of that round behind them (`ready1-<rank>`).
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Set

from benchprobe.config import Rendezvous

POLL_INTERVAL_S = 0.001


class Meeting:
    """This process's part in a barrier. Every method may raise OSError: the folder can go away."""

    def __init__(self, barrier: Rendezvous, number: int = 0) -> None:
        """`number`: which meeting of these processes it is; the first is 0."""
        self._barrier = barrier
        self._round = str(number) if number else ""

    def wait_until_all_ready(self) -> None:
        """Returns as soon as every process is ready or gone."""
        ready, go = f"ready{self._round}-", f"go{self._round}"
        self._create(f"{ready}{self._barrier.rank}")
        while not self._exists(go):
            if self._count(ready, "gone-") >= self._barrier.size:
                self._create(go)
                return
            time.sleep(POLL_INTERVAL_S)

    def say_done(self) -> None:
        self._create(f"done{self._round}-{self._barrier.rank}")

    def let_others(self, now_ns: int) -> int:
        """Between two chunks of steps. Returns for how long it was their turn."""
        return 0

    def leave(self) -> None:
        """The process ends."""

    def told(self) -> Dict[str, Any]:
        """What is worth telling about it at the end."""
        return {}

    def all_done(self) -> bool:
        return self._count(f"done{self._round}-", "gone-") >= self._barrier.size

    def _create(self, name: str) -> None:
        os.close(os.open(os.path.join(self._barrier.folder, name), os.O_CREAT | os.O_WRONLY, 0o644))

    def _exists(self, name: str) -> bool:
        # Unlike os.path.exists this raises when the folder itself is gone, so that nobody waits for ever.
        return name in os.listdir(self._barrier.folder)

    def _count(self, *prefixes: str) -> int:
        ranks: Set[str] = set()
        for name in os.listdir(self._barrier.folder):
            for prefix in prefixes:
                if name.startswith(prefix):
                    ranks.add(name[len(prefix) :])
        return len(ranks)

"""The node agent's warm workers: which one takes a job."""

from __future__ import annotations

import json
import os
import socket

from benchwright.agent.supervise.program_environment import build_environment
from benchwright.agent.warm.server import OF_ONE_JOB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from benchwright.agent.supervise.signals import SignalQueue
    from benchwright.core.job import Job

MOST = max(4, min(8, (os.cpu_count() or 1) // 2))  # warm processes at a time: each has torch in memory


class _Worker:
    """`key`: what its warm process was started with."""

    __slots__ = ("key", "orders", "pid")

    def __init__(self, key: object, orders: socket.socket, pid: int) -> None:
        self.key = key
        self.orders = orders
        self.pid = pid


class WarmWorkers:
    """`fork` makes a worker that reads from the first socket, and closes the other end of it; it returns its pid. `signals`
    returns from waiting when one of them is idle."""

    def __init__(self, fork: Callable[[socket.socket, socket.socket], int], signals: SignalQueue) -> None:
        self._fork = fork
        self._signals = signals
        self._idle: list[_Worker] = []  # the one that was idle for longest first
        self._busy: list[_Worker] = []

    def give(self, order: dict[str, Any], job: Job) -> int:
        """Has the job run; returns the pid of its worker. OSError if none can be started."""
        key = _key(job)
        worker = next((w for w in self._idle if w.key == key), None)
        if worker is None:
            while len(self._idle) + len(self._busy) >= MOST and self._idle:
                self._dismiss(self._idle.pop(0))
            ours, theirs = socket.socketpair()
            with theirs:
                worker = _Worker(key, ours, self._fork(theirs, ours))
            self._signals.watch(ours.fileno())
        else:
            self._idle.remove(worker)
        worker.orders.sendall(json.dumps(order).encode() + b"\n")
        self._busy.append(worker)
        return worker.pid

    def hear(self, ready: list[int]) -> None:
        """Workers that reported are idle, or have ended."""
        for worker in [w for w in (*self._idle, *self._busy) if w.orders.fileno() in ready]:
            (self._idle if worker in self._idle else self._busy).remove(worker)
            if _still_there(worker.orders):
                self._idle.append(worker)
            else:
                self._dismiss(worker)

    def close(self) -> None:
        """They end once their jobs have."""
        for worker in (*self._idle, *self._busy):
            self._dismiss(worker)
        self._idle, self._busy = [], []

    def _dismiss(self, worker: _Worker) -> None:
        """It ends when it finds its socket closed."""
        self._signals.unwatch(worker.orders.fileno())
        worker.orders.close()


def _still_there(orders: socket.socket) -> bool:
    try:
        return bool(orders.recv(16))
    except OSError:
        return False


def _key(job: Job) -> object:
    """Jobs with the same key can be forked from the same process."""
    environment = build_environment(job, os.environ, "")
    for name in OF_ONE_JOB:
        environment.pop(name, None)
    return job.argv[0], job.warm, job.cwd, job.cores, job.layout, tuple(sorted(environment.items()))

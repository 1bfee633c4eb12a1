"""A warm worker: supervises one job after another, whose programs are forked from the same warm process.

Like a supervisor it is forked by the node agent, and the subreaper of all it starts: that is how a program that another
process forked becomes its child.
"""

from __future__ import annotations

import json
import signal
import socket

from benchwright.agent.message_pipe import Speaker
from benchwright.agent.supervise.signals import SignalQueue
from benchwright.agent.supervise.supervisor import Supervisor
from benchwright.agent.warm.start import WarmStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from benchwright.agent.processes.job_group import AgentMark
    from benchwright.core.job import Job
    from benchwright.core.plugins.entry_points import EntryPoint

IDLE = b"."


class WarmWorker:
    """`orders`: where jobs come from, one line each; it ends when the agent closes it."""

    def __init__(
        self,
        orders: socket.socket,
        channel: int,
        samplers: Iterable[EntryPoint],
        mark: AgentMark,
        read_job: Callable[[dict[str, Any]], Job],
    ) -> None:
        self._orders = orders
        self._channel = channel
        self._samplers = samplers
        self._mark = mark
        self._read_job = read_job
        self._start = WarmStart(mark.token)
        self._unread = b""

    def run(self) -> None:
        """SIGTERM is blocked between jobs, so that it always meets a queue that counts it."""
        while True:
            signals = SignalQueue((signal.SIGTERM,), ignored=(signal.SIGINT, signal.SIGHUP))
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            job = self._next(signals)
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
            stopped = signals.count[signal.SIGTERM] > 0
            signals.close()
            if job is None:
                self._start.close()
                return
            self._supervise(job, stopped)

    def _supervise(self, job: Job, stopped: bool) -> None:
        speaker = Speaker(self._channel)
        supervisor = Supervisor(job, speaker, self._samplers, self._mark, self._start, self._say_idle)
        if stopped:
            supervisor.stop_at_once()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        supervisor.run()
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
        supervisor.close()

    def _next(self, signals: SignalQueue) -> Job | None:
        """None: there will be none, or we are asked to end."""
        signals.watch(self._orders.fileno())
        while b"\n" not in self._unread:
            ready = signals.wait(None)
            if self._orders.fileno() in ready:
                data = self._orders.recv(1 << 16)
                if not data:
                    return None
                self._unread += data
            elif signals.count[signal.SIGTERM]:
                return None
        line, _, self._unread = self._unread.partition(b"\n")
        return self._read_job(json.loads(line))

    def _say_idle(self) -> None:
        """Before the end of the job is reported, which may bring the next one."""
        try:
            self._orders.send(IDLE)
        except OSError:
            pass  # the agent is gone

"""A warm worker: supervises one job after another, whose programs are forked from the same warm process.

Like a supervisor it is forked by the node agent, and the subreaper of all it starts: that is how a program that another
process forked becomes its child.
"""

from __future__ import annotations

import json
import signal
import socket

from benchwright.agent.message_pipe import MessageWriter
from benchwright.agent.supervise.signals import SignalQueue
from benchwright.agent.supervise.spawn import ColdStart, Started, spawn
from benchwright.agent.supervise.supervisor import Supervisor
from benchwright.agent.warm.server import NotWarm, WarmServer

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from benchwright.agent.processes.job_group import AgentMark
    from benchwright.core.entry_points import EntryPoint
    from benchwright.core.job import Job


# Starts programs warm where that is possible, and says why where it is not.


_MOST_SERVERS = 2  # one that was killed, for lack of memory perhaps, is started again once


class WarmStart(ColdStart):
    """Of jobs that are alike in all that their warm process was started with."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._server: WarmServer | None = None
        self._begun = 0
        self._problem = ""

    def spawn(
        self,
        job: Job,
        environment: Mapping[str, str],
        log_fd: int,
        data_fd: int | None,
        *,
        forked: Callable[[int], None],
        stopped: Callable[[], bool],
    ) -> Started:
        try:
            server = self._server or self._new_server(job, environment, stopped)
            return server.fork(job, environment, log_fd, data_fd, forked, stopped)
        except NotWarm as error:
            self._problem = f"no warm process: {error}"
        self.close()
        started = spawn(job, environment, log_fd, data_fd, forked)
        started.remark = self._problem
        return started

    def _new_server(self, job: Job, environment: Mapping[str, str], stopped: Callable[[], bool]) -> WarmServer:
        if self._begun >= _MOST_SERVERS:
            raise NotWarm(self._problem.removeprefix("no warm process: "))
        self._begun += 1
        self._server = server = WarmServer(job, environment, self._token)
        self.others = frozenset((server.pid,))
        server.await_ready(stopped)
        return server

    def lost(self, pid: int) -> None:
        self.others -= {pid}
        if self._server is not None and self._server.pid == pid:
            self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


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
        speaker = MessageWriter(self._channel)
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

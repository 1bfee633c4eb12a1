"""The node agent: takes orders on stdin, forks a supervisor for each job, and leaves nothing behind.

It is the subreaper of its supervisors: if one is killed, its processes become ours and are ended here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from types import SimpleNamespace

from benchwright.agent.file_return import INTERVAL_S, ReturnedJob
from benchwright.agent.message_pipe import MessageWriter
from benchwright.agent.processes import job_group
from benchwright.agent.processes.family import adopt_orphans, signal_me_when_parent_dies
from benchwright.agent.processes.process_tree import MARKER, signal_descendants
from benchwright.agent.samplers import find_samplers
from benchwright.agent.supervise.barrier import leave_barrier
from benchwright.agent.supervise.signals import SignalQueue
from benchwright.agent.supervise.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from typing import Any

    from benchwright.agent.warm.workers import WarmWorkers
    from benchwright.core.job import Job

_PATIENCE_S = 20.0  # for supervisors to end, beyond the grace of their jobs
_STOPPING = (signal.SIGTERM, signal.SIGHUP)


def read_job(fields: dict[str, Any]) -> Job:
    """The Job of an order, which holds every field.

    At run time it is a plain namespace with the same attributes: importing msgspec would more than
    double the cost of starting the agent.
    """
    parts = {
        name: fields[name] and SimpleNamespace(**fields[name]) for name in ("barrier", "launch_end", "turn", "built")
    }
    tuples = {name: tuple(fields[name]) for name in ("argv", "devices", "warm")}
    job: Any = SimpleNamespace(**{**fields, **tuples, **parts})
    return job  # type: ignore[no-any-return]


class NodeAgent:
    """Serves one main process until its end of the pipe is closed, or no order came for `lease_s`."""

    def __init__(self, orders: int, channel: int, lease_s: float | None = None) -> None:
        self._orders = orders
        self._channel = channel
        self._lease_s = lease_s
        self._heard_at = time.monotonic()
        self._signals = SignalQueue((*_STOPPING, signal.SIGCHLD), ignored=(signal.SIGINT,))
        self._speaker = MessageWriter(channel)
        self._samplers = list(find_samplers().values())
        self._token = os.environ.get(MARKER) or f"{os.getpid()}-{time.time_ns():016x}"
        self._group = job_group.enter(self._token)
        self._jobs: dict[int, Job] = {}  # by the pid of their supervisor
        self._returned: list[ReturnedJob] = []  # jobs whose files are sent back
        self._workers: WarmWorkers | None = None
        self._unread = b""

    def run(self) -> None:
        """Until the orders end or a signal comes; then stop every job and wait for them."""
        self._say_ready()
        self._signals.watch(self._orders)
        while not any(self._signals.count[number] for number in _STOPPING):
            ready = self._signals.wait(self._idle_s())
            if self._workers is not None:
                self._workers.hear(ready)
            self._reap()
            self._speaker.flush()
            self._send_back()
            if self._orders in ready:
                if not self._take_orders():
                    break
                self._heard_at = time.monotonic()
            elif self._lease_left_s() <= 0:
                os.write(2, f"no word from the main process for {self._lease_s:g} s\n".encode())
                break
        self._shut_down()

    def _lease_left_s(self) -> float:
        return float("inf") if self._lease_s is None else self._heard_at + self._lease_s - time.monotonic()

    def _idle_s(self) -> float | None:
        idle_s = self._quiet_s()
        if self._lease_s is None:
            return idle_s
        return self._lease_left_s() if idle_s is None else min(idle_s, self._lease_left_s())

    def _quiet_s(self) -> float | None:
        if any(returned.has_ended for returned in self._returned):
            return 0.02 if self._speaker.backed_up else 0.0
        if self._speaker.backed_up:
            return 0.1
        return INTERVAL_S if self._returned else None

    def _send_back(self) -> None:
        self._returned = [returned for returned in self._returned if not returned.advance()]

    def _take_orders(self) -> bool:
        """Carry out pending orders; False when there will be no more."""
        data = os.read(self._orders, 1 << 16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._carry_out(json.loads(line))
        return bool(data)

    def _carry_out(self, order: dict[str, Any]) -> None:
        if order["do"] == "run":
            self._run(order["job"], returns=order.get("return", False))
        elif order["do"] == "stop":
            self._stop(order["job"])
        elif order["do"] == "stop_all":
            self._stop(None)
        elif order["do"] == "greet":
            self._say_ready()
        elif order["do"] == "word":
            self._speaker.say("word")

    def _say_ready(self) -> None:
        self._speaker.say("ready", pid=os.getpid(), group=self._group)

    def _run(self, order: dict[str, Any], *, returns: bool) -> None:
        job = read_job(order)
        try:
            preload(job)
        except ImportError:
            pass  # the supervisor will fail on it too, and can say so in the job's stream
        returned = ReturnedJob(job, self._speaker) if returns else None
        try:
            pid = self._run_warm(order, job) if job.warm and returned is None else None
            if pid is None:
                pid = self._fork(lambda agent: self._become_supervisor(job, agent))
        except OSError as error:
            detail = f"no process could be started: {error.strerror}; the limit on processes may be reached"
            self._speaker.say("finished", outcome={"job": job.id, "detail": detail})
            if returned is not None:
                self._speaker.say("returned", job=job.id, files={})
            return
        self._jobs[pid] = job
        if returned is not None:
            returned.supervisor = pid
            self._returned.append(returned)

    def _fork(self, become: Callable[[int], None]) -> int:
        """The pid of a child that does what `become` says, given our own pid, and then ends."""
        agent = os.getpid()
        # Blocked until the child listens, so that an order to stop it is not lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
        try:
            pid = os.fork()
            if pid == 0:
                self._become(lambda: become(agent))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        return pid

    def _become(self, what: Callable[[], None]) -> None:
        """In the forked child. Never returns."""
        code = 1
        try:
            self._signals.close()
            os.close(self._orders)
            if self._workers is not None:
                self._workers.close()
            adopt_orphans()
            what()
            code = 0
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)

    def _become_supervisor(self, job: Job, agent: int) -> None:
        mark = job_group.AgentMark(self._token, self._group)
        supervisor = Supervisor(job, MessageWriter(self._channel), self._samplers, mark)
        if not signal_me_when_parent_dies(signal.SIGTERM, agent):
            supervisor.stop_at_once()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # SIGTERM was blocked until it listens
        supervisor.run()

    def _run_warm(self, order: dict[str, Any], job: Job) -> int | None:
        """The pid of the worker that runs it; None: it must be run in another way."""
        from benchwright.agent.warm.worker import WarmWorker
        from benchwright.agent.warm.workers import WarmWorkers

        def become(orders: socket.socket, ours: socket.socket, agent: int) -> None:
            ours.close()
            mark = job_group.AgentMark(self._token, self._group)
            worker = WarmWorker(orders, self._channel, self._samplers, mark, read_job)
            if signal_me_when_parent_dies(signal.SIGTERM, agent):
                worker.run()

        if self._workers is None:
            fork = self._fork
            self._workers = WarmWorkers(lambda a, b: fork(lambda agent: become(a, b, agent)), self._signals)
        try:
            return self._workers.give(order, job)
        except (OSError, LookupError):
            return None  # a separate supervisor will say why, if it cannot be run at all

    def _stop(self, job_id: str | None) -> None:
        for pid, job in self._jobs.items():
            if job_id is None or job.id == job_id:
                os.kill(pid, signal.SIGTERM)  # our own child, not yet reaped: the pid is still its own

    def _reap(self) -> None:
        """Reap who has ended; clean up after a supervisor that failed."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            job = self._jobs.pop(pid, None)
            if job is not None and status != 0:
                self._clean_up(job, status)
            for returned in self._returned:
                returned.has_ended = returned.has_ended or returned.supervisor == pid

    def _clean_up(self, job: Job, status: int) -> None:
        """End what a dead supervisor left: all our children that are not supervisors."""
        deadline = time.monotonic() + _PATIENCE_S
        while signal_descendants(os.getpid(), signal.SIGKILL, spare=frozenset(self._jobs)):
            if time.monotonic() > deadline:
                break
            self._signals.wait(0.01)
            self._reap()
        leave_barrier(job)
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed (signal {-code})" if code < 0 else f"failed (code {code}); this is a bug in benchwright"
        detail = f"the agent was killed: its supervisor of this job {how}"
        self._speaker.say("finished", outcome={"job": job.id, "detail": detail})

    def _shut_down(self) -> None:
        self._stop(None)
        if self._workers is not None:
            self._workers.close()
        grace_s = max((job.grace_s for job in self._jobs.values()), default=0.0)
        deadline = time.monotonic() + grace_s + _PATIENCE_S
        while (self._jobs or self._returned) and not self._speaker.main_is_gone and time.monotonic() < deadline:
            self._signals.wait(0.01 if self._returned else 0.5)
            self._reap()
            self._send_back()
        while self._jobs and time.monotonic() < deadline:
            self._signals.wait(0.5)
            self._reap()
        for pid in self._jobs:
            os.kill(pid, signal.SIGKILL)
        while signal_descendants(os.getpid(), signal.SIGKILL) and time.monotonic() < deadline + _PATIENCE_S:
            self._signals.wait(0.01)
            self._reap()
        self._speaker.flush(1.0)
        job_group.leave(self._group)


def preload(job: Job) -> None:
    """Import here, once, what each supervisor of such a job would import."""
    import benchwright.agent.samplers.machine
    import benchwright.agent.samplers.process

    if job.metrics:
        import benchwright.agent.extractors.scanner  # noqa: F401


def serve(words: Sequence[str] = ()) -> int:
    """The node agent's process: orders from stdin, messages to stdout, anything else to stderr. `words`: see `__main__`."""
    lease_s = float(words[0]) if words else None
    for name in [name for name in os.environ if name.startswith(tuple(words[1:]))]:
        del os.environ[name]
    adopt_orphans()
    orders, channel = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.flush()
    NodeAgent(orders, channel, lease_s).run()
    return 0

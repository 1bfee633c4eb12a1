"""The node agent: takes orders on stdin, forks a supervisor for each job, and leaves nothing behind.

It is the subreaper of its supervisors: if one is killed, what that one looked after comes to us and is ended here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from benchwright.agent.message_pipe import Speaker
from benchwright.agent.order import read_job
from benchwright.agent.processes import job_group, kernel
from benchwright.agent.processes.process_tree import MARKER, signal_descendants
from benchwright.agent.samplers import find_samplers
from benchwright.agent.supervise.barrier import leave_barrier
from benchwright.agent.supervise.signals import SignalQueue
from benchwright.agent.supervise.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from benchwright.core.job import Job

_PATIENCE_S = 20.0  # for supervisors to end, beyond the grace of their jobs
_STOPPING = (signal.SIGTERM, signal.SIGHUP)


class NodeAgent:
    """Serves one main process until its end of the pipe is closed."""

    def __init__(self, orders: int, channel: int) -> None:
        self._orders = orders
        self._channel = channel
        self._signals = SignalQueue((*_STOPPING, signal.SIGCHLD), ignored=(signal.SIGINT,))
        self._speaker = Speaker(channel)
        self._samplers = list(find_samplers().values())
        self._token = os.environ.get(MARKER) or f"{os.getpid()}-{time.time_ns():016x}"
        self._group = job_group.enter(self._token)
        self._jobs: dict[int, Job] = {}  # by the pid of their supervisor
        self._unread = b""

    def run(self) -> None:
        """Until there are no more orders, or a signal says so; then stop every job and wait for them."""
        self._say_ready()
        self._signals.watch(self._orders)
        while not any(self._signals.count[number] for number in _STOPPING):
            ready = self._signals.wait(0.1 if self._speaker.backed_up else None)
            self._reap()
            self._speaker.flush()
            if self._orders in ready and not self._take_orders():
                break
        self._shut_down()

    def _take_orders(self) -> bool:
        """Carry out the orders that have come; False at their end."""
        data = os.read(self._orders, 1 << 16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._carry_out(json.loads(line))
        return bool(data)

    def _carry_out(self, order: dict[str, Any]) -> None:
        if order["do"] == "run":
            self._run(read_job(order["job"]))
        elif order["do"] == "stop":
            self._stop(order["job"])
        elif order["do"] == "stop_all":
            self._stop(None)
        elif order["do"] == "greet":
            self._say_ready()

    def _say_ready(self) -> None:
        self._speaker.say("ready", pid=os.getpid(), group=self._group)

    def _run(self, job: Job) -> None:
        try:
            preload(job)
        except ImportError:
            pass  # the supervisor meets it again, and can say so in the job's stream
        agent = os.getpid()
        # Blocked until the child listens, so that an order to stop it cannot fall between.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
        try:
            pid = os.fork()
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
            detail = f"no process could be started: {error.strerror}; the limit on processes may be reached"
            self._speaker.say("finished", outcome={"job": job.id, "detail": detail})
            return
        if pid == 0:
            self._become_supervisor(job, agent)
        self._jobs[pid] = job
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))

    def _become_supervisor(self, job: Job, agent: int) -> None:
        """In the forked child. Never returns."""
        code = 1
        try:
            self._signals.close()
            os.close(self._orders)
            kernel.adopt_orphans()
            mark = job_group.AgentMark(self._token, self._group)
            supervisor = Supervisor(job, Speaker(self._channel), self._samplers, mark)
            if not kernel.signal_me_when_parent_dies(signal.SIGTERM, agent):
                supervisor.stop_at_once()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())  # SIGTERM was blocked until it listens
            supervisor.run()
            code = 0
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)

    def _stop(self, job_id: str | None) -> None:
        for pid, job in self._jobs.items():
            if job_id is None or job.id == job_id:
                os.kill(pid, signal.SIGTERM)  # our own child, and not yet reaped: the number is still its

    def _reap(self) -> None:
        """Note who has ended; clean up after a supervisor that did not end by itself."""
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

    def _clean_up(self, job: Job, status: int) -> None:
        """End what a dead supervisor left behind: all our children that are not supervisors."""
        deadline = time.monotonic() + _PATIENCE_S
        while signal_descendants(os.getpid(), signal.SIGKILL, spare=frozenset(self._jobs)):
            if time.monotonic() > deadline:
                break
            self._signals.wait(0.01)
            self._reap()
        leave_barrier(job.barrier)
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed (signal {-code})" if code < 0 else f"failed (code {code}); this is a bug in benchwright"
        detail = f"the agent was killed: its supervisor of this job {how}"
        self._speaker.say("finished", outcome={"job": job.id, "detail": detail})

    def _shut_down(self) -> None:
        self._stop(None)
        grace_s = max((job.grace_s for job in self._jobs.values()), default=0.0)
        deadline = time.monotonic() + grace_s + _PATIENCE_S
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
    """Import here, once, what every supervisor of such a job would import for itself."""
    import benchwright.agent.samplers.machine
    import benchwright.agent.samplers.process

    if job.metrics:
        import benchwright.agent.extractors.scanner  # noqa: F401


def serve() -> int:
    """The node agent's process: orders from stdin, messages to stdout, whatever else is printed to stderr."""
    kernel.adopt_orphans()
    orders, channel = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.flush()
    NodeAgent(orders, channel).run()
    return 0

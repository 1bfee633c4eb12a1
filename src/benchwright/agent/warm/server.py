"""A warm process seen from the supervisor that starts it: `python -m benchmodels.warm`, which forks programs on request."""

from __future__ import annotations

import json
import os
import select
import socket
import time
from types import SimpleNamespace

from benchwright.agent.processes.process_tree import MARKER
from benchwright.agent.supervise.spawn import CannotStart, Started, explain, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from benchwright.core.job import Job

CONFIG = "BENCHPROBE_CONFIG"
OF_ONE_JOB = (CONFIG, MARKER)  # variables that differ from job to job
PATIENCE_S = 300.0  # with its imports: on a cold network file system they take minutes
_ANSWER_S = 30.0
_STEP_S = 0.05
_LONGEST = 1 << 16


class NotWarm(Exception):
    """No program can be forked; the text says why."""


class WarmServer:
    """Started with the first job, whose interpreter, environment, folder and cores it shares with all later ones."""

    def __init__(self, job: Job, environment: Mapping[str, str], token: str) -> None:
        kept = {name: value for name, value in environment.items() if name != CONFIG}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._log = os.memfd_create("warm")
        words = (job.argv[0], "-m", "benchmodels.warm", *job.warm)
        program: Any = SimpleNamespace(argv=words, shell=False, cwd=job.cwd, cores=job.cores)
        try:
            self.pid: int = spawn(program, {**kept, MARKER: f"{token}/warm"}, self._log, theirs.fileno()).pid
        finally:
            theirs.close()

    def await_ready(self, stopped: Callable[[], bool]) -> None:
        """Until it has imported everything. Raises NotWarm; also if we are asked to stop meanwhile."""
        answer = self._answer(PATIENCE_S, stopped)
        if "ready" not in answer:
            raise NotWarm(str(answer.get("failed")))

    def fork(
        self,
        job: Job,
        environment: Mapping[str, str],
        log_fd: int,
        data_fd: int | None,
        forked: Callable[[int], None],
        stopped: Callable[[], bool] = lambda: False,
    ) -> Started:
        """Like `spawn`. Raises CannotStart, or NotWarm if nothing was started."""
        gate, theirs = socket.socketpair()
        with gate:
            with theirs:
                fds = [theirs.fileno(), log_fd, *([] if data_fd is None else [data_fd])]
                try:
                    socket.send_fds(self._control, [b"fork"], fds)
                except OSError as error:
                    raise NotWarm(f"it is gone: {error.strerror}") from error
            answer = self._answer(_ANSWER_S, stopped)
            if "pid" not in answer:
                raise NotWarm(str(answer.get("failed")))
            pid = int(answer["pid"])
            forked(pid)
            changes = {name: environment[name] for name in OF_ONE_JOB if name in environment}
            order = {"argv": job.argv, "cwd": job.cwd, "env": changes, "supervisor": os.getpid()}
            try:
                gate.sendall(json.dumps(order).encode() + b"\n")
                reply = json.loads(gate.makefile("rb").readline() or b"{}")
            except OSError as error:
                raise CannotStart(f"the program could not be forked: {error.strerror}") from error
        if "failed" in reply:
            os.waitpid(pid, 0)
            stage, number = reply["failed"]
            raise CannotStart(explain(stage, number, job.argv[0], job.cwd))
        if "began_ns" not in reply:
            raise CannotStart("the program ended before it began")
        started = Started(pid, reply["began_ns"], reply["cpu_ns"], fork_rss_bytes=reply.get("rss_bytes", 0))
        started.warm, started.remark = "cold" not in reply, reply.get("cold")
        return started

    def close(self) -> None:
        """It ends when nobody is at the other end."""
        self._control.close()
        os.close(self._log)

    def _answer(self, patience_s: float, stopped: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        deadline = time.monotonic() + patience_s
        while not poll.poll(_STEP_S * 1000):
            if stopped():
                raise NotWarm("asked to stop")
            if time.monotonic() > deadline:
                raise NotWarm(f"no answer within {patience_s:g} s")
        try:
            said = self._control.recv(_LONGEST)
        except OSError:  # it was killed before it read all
            said = b""
        if not said:
            raise NotWarm(f"it ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(said)
        return answer

    def _last_words(self) -> str:
        size = os.fstat(self._log).st_size
        lines = os.pread(self._log, 4096, max(0, size - 4096)).decode(errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else "it printed nothing"

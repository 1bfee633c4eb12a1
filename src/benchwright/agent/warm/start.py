"""Starts programs warm where that is possible, and says why where it is not."""

from __future__ import annotations

from benchwright.agent.supervise.spawn import ColdStart, Started, spawn
from benchwright.agent.warm.server import NotWarm, WarmServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchwright.core.job import Job

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

"""Running jobs on this machine, through a node agent in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from benchwright.domain.errors import AgentLost
from benchwright.domain.job import Job, Outcome
from benchwright.domain.machine import Machine
from benchwright.executors.agent_process import AgentProcess
from benchwright.executors.base import Listener

_PATIENCE_S = 30.0  # for the agent to end its jobs, beyond their grace


class LocalExecutor:
    """Starts its agent with the first job. If the agent is killed, its jobs are ended here and the next `run`
    starts another."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._agent: AgentProcess | None = None
        self._stops = 0
        self._wake_read = self._wake_write = -1

    def __enter__(self) -> Self:
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what runs, as `stop` does, and the agent."""
        if self._agent is not None:
            self._agent.close(_PATIENCE_S)
            self._agent = None
        wake_fds = (self._wake_read, self._wake_write)
        self._wake_read = self._wake_write = -1
        for fd in wake_fds:
            os.close(fd)

    def machine(self) -> Machine:
        from benchwright.agent.fingerprint import read_machine

        return read_machine()

    def stop(self) -> None:
        self._stops += 1
        if self._wake_write < 0:
            return
        try:
            os.write(self._wake_write, b"s")
        except BlockingIOError:
            pass  # full: it will wake up anyway

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        if self._stops or not jobs:
            return [Outcome(job=job.id, stopped=True) for job in jobs]
        if self._agent is not None and not self._agent.is_alive():  # killed while nothing ran
            self._agent.abandon()
            self._agent = None
        if self._agent is None:
            self._agent = AgentProcess.start(self._python)
        launch = _Launch(jobs, listener)
        for job in jobs:
            self._agent.order({"do": "run", "job": msgspec.to_builtins(job)})
        self._follow(self._agent, launch)
        return [launch.outcomes[job.id] for job in jobs]

    def _follow(self, agent: AgentProcess, launch: _Launch) -> None:
        """Until every job has an outcome."""
        stops_sent = 0
        give_up_at: float | None = None
        while launch.open:
            for message in agent.listen(self._wake_read, None if give_up_at is None else 0.2):
                launch.take(message)
            if self._stops > stops_sent:
                self._drain_wakes()
                stops_sent += 1
                agent.order({"do": "stop_all"})
            if give_up_at is None and (stops_sent or agent.is_dead):
                give_up_at = time.monotonic() + launch.grace_s + _PATIENCE_S
            silent = give_up_at is not None and time.monotonic() > give_up_at
            if agent.is_silent or silent:
                self._lose(agent, launch)

    def _lose(self, agent: AgentProcess, launch: _Launch) -> None:
        """The agent is gone: end what it left behind, and say so for each job that has no outcome."""
        self._agent = None
        last_words = agent.abandon()
        if not agent.was_ready and not agent.was_killed:
            raise AgentLost(f"the agent did not start; {last_words or 'it printed nothing'}")
        detail = "the agent was killed"
        if last_words:
            detail += f"; its last words: {last_words}"
        for job_id in list(launch.open):
            launch.finish(Outcome(job=job_id, stopped=self._stops > 0, detail=detail))

    def _drain_wakes(self) -> None:
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass


class _Launch:
    """The jobs of one `run`, and what is known of each."""

    def __init__(self, jobs: Sequence[Job], listener: Listener) -> None:
        self._listener = listener
        self.open = {job.id for job in jobs}
        self.outcomes: dict[str, Outcome] = {}
        self.grace_s = max(job.grace_s for job in jobs)

    def take(self, message: dict[str, Any]) -> None:
        """One message of the agent."""
        said = message["say"]
        if said == "finished":
            self.finish(msgspec.convert(message["outcome"], Outcome))
        elif said == "started":
            self._listener.on_started(message["job"], message["pid"])
        elif said == "output":
            self._listener.on_output(message["job"], message["text"])
        elif said == "progress":
            self._listener.on_progress(message["job"], message["values"])

    def finish(self, outcome: Outcome) -> None:
        if outcome.job in self.open:  # a supervisor that was killed after its last word is reported twice
            self.open.remove(outcome.job)
            self.outcomes[outcome.job] = outcome
            self._listener.on_finished(outcome)

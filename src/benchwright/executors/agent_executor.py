"""Runs jobs through agents, one per node: what the local and the ssh executor have in common."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from benchwright.agent.processes.leftovers import abandoned, end_leftovers
from benchwright.agent.processes.process_tree import LINUX
from benchwright.core.errors import AgentLost
from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import Job, Outcome
from benchwright.executors.agent_process import AgentProcess, listen
from benchwright.executors.base import Listener
from benchwright.executors.returned_files import ReturnedFiles
from benchwright.plan.starts import MOST_AHEAD

PATIENCE_S = 30.0  # for an agent to end its jobs, beyond their grace
_EXPLAIN_S = 20.0  # for an agent elsewhere to end, after it was asked to by somebody else


class AgentExecutor(ABC):
    """Starts an agent with the first job for its node. If one is killed, its jobs are ended and the next `run` starts
    another. A subclass says how to start an agent, and how to explain a lost one."""

    def __init__(self) -> None:
        self._agents: dict[str, AgentProcess] = {}  # by node
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
        """End what runs, as `stop` does, and the agents."""
        agents, self._agents = self._agents, {}
        for agent in agents.values():
            agent.say_goodbye()
        for agent in agents.values():
            agent.close(PATIENCE_S)
        wake_fds = (self._wake_read, self._wake_write)
        self._wake_read = self._wake_write = -1
        for fd in wake_fds:
            os.close(fd)

    def stop(self) -> None:
        self._stops += 1
        if self._wake_write < 0:
            return
        try:
            os.write(self._wake_write, b"s")
        except BlockingIOError:
            pass  # the pipe is full: it will wake up anyway

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        if self._stops or not jobs:
            return [Outcome(job=job.id, stopped=True) for job in jobs]
        launch = OpenJobs(jobs, listener, {job.id: self._node_of(job) for job in jobs}, lambda: self._stops > 0)
        self._bring_up(launch)
        launch.leased = {node for node, agent in self._agents.items() if agent.has_lease}
        self._order_due(launch)
        self._follow(launch)
        return [launch.outcomes[job.id] for job in jobs]

    def _order_due(self, launch: OpenJobs) -> None:
        """All jobs at once; of jobs waiting for their turn, only a few at a time."""
        for job in launch.due():
            self._agents[launch.nodes[job.id]].order(self._order(job, launch))

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        if not LINUX:
            return Leftovers()
        ended, left = end_leftovers([(mark.token, mark.group) for mark in marks]) if marks else ([], [])
        others = [name for name in abandoned() if name not in left]
        return Leftovers(ended=tuple(ended), left=tuple(left), of_others=tuple(others))

    @abstractmethod
    def _node_of(self, job: Job) -> str:
        """The node of the agent that runs it."""

    @abstractmethod
    def _bring_up(self, launch: OpenJobs) -> None:
        """Ensure an agent for every node of the launch; jobs that cannot run are finished here."""

    def _order(self, job: Job, launch: OpenJobs) -> dict[str, object]:
        """The message to its agent. A subclass may have the job's files sent back: see `OpenJobs.returned`."""
        return {"do": "run", "job": msgspec.to_builtins(job)}

    @abstractmethod
    def _describe_loss(self, node: str, agent: AgentProcess, last_words: str) -> str:
        """Why the jobs of that agent have no other outcome."""

    def _describe_loss_here(self, agent: AgentProcess, last_words: str) -> str:
        if not agent.was_ready and not agent.was_killed:
            raise AgentLost(f"the agent did not start; {last_words or 'it printed nothing'}")
        return "the agent was killed" + (f"; its last words: {last_words}" if last_words else "")

    def _follow(self, launch: OpenJobs) -> None:
        """Until every job has an outcome."""
        stops_sent = 0
        give_up_at: dict[str, float] = {}
        while launch.open:
            agents = {node: self._agents[node] for node in launch.open_nodes()}
            for message in listen(agents.values(), self._wake_read, 0.2 if give_up_at else None):
                launch.take(message)
            for node in launch.stopped_by_others & agents.keys() - give_up_at.keys():
                give_up_at[node] = time.monotonic() + _EXPLAIN_S
            if not self._stops:
                self._order_due(launch)
            if self._stops > stops_sent:
                self._drain_wakes()
                launch.stop_waiting()
                stops_sent += 1
                for agent in agents.values():
                    agent.order({"do": "stop_all"})
            for node, agent in agents.items():
                if node not in give_up_at and (stops_sent or agent.is_dead):
                    give_up_at[node] = time.monotonic() + launch.grace_s + PATIENCE_S
                if agent.is_silent or agent.is_mute or time.monotonic() > give_up_at.get(node, float("inf")):
                    self._lose(node, launch)

    def _lose(self, node: str, launch: OpenJobs) -> None:
        """An agent is gone: end what it left, and give each of its open jobs an outcome that says so."""
        agent = self._agents.pop(node)
        last_words = agent.abandon()
        if launch.open_on(node):
            detail = self._describe_loss(node, agent, last_words)
            for job_id in launch.open_on(node):
                seen = launch.outcomes_elsewhere.get(job_id, Outcome(job=job_id))
                launch.finish(msgspec.structs.replace(seen, stopped=self._stops > 0, detail=detail))

    def _drain_wakes(self) -> None:
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass


class OpenJobs:
    """The jobs of one `run` and their outcomes so far. `nodes`: job → node. `asked_to_stop`: whether we were.

    A scheduler that ends an allocation asks our processes on its nodes to stop: why is known when their agent has ended.
    """

    def __init__(
        self, jobs: Sequence[Job], listener: Listener, nodes: Mapping[str, str], asked_to_stop: Callable[[], bool]
    ) -> None:
        self.listener = listener
        self._asked_to_stop = asked_to_stop
        self.outcomes_elsewhere: dict[str, Outcome] = {}  # of jobs that somebody else has stopped
        self.leased: set[str] = set()  # nodes
        self.nodes = nodes
        self.jobs = {job.id: job for job in jobs}
        self.returned: dict[str, ReturnedFiles] = {}  # of jobs whose files are sent back
        self._held: dict[str, Outcome] = {}  # until their files are complete
        self.open = {job.id for job in jobs}
        self._waiting = list(jobs)  # not ordered yet
        self.outcomes: dict[str, Outcome] = {}
        self.grace_s = max(job.grace_s for job in jobs)
        self.folders = sorted({os.path.dirname(job.stream) for job in jobs})
        self.probes = sorted({job.probe_path for job in jobs if job.probe_path is not None})

    def due(self) -> list[Job]:
        """Jobs to order now, once each."""
        self._waiting = [job for job in self._waiting if job.id in self.open]
        room = MOST_AHEAD - (len(self.open) - len(self._waiting))
        due = [job for place, job in enumerate(self._waiting) if job.turn is None or place < room]
        self._waiting = [job for job in self._waiting if job not in due]
        return due

    def stop_waiting(self) -> None:
        """Drop the jobs not ordered yet."""
        for job in self._waiting:
            self.finish(Outcome(job=job.id, stopped=True))
        self._waiting = []

    def open_nodes(self) -> list[str]:
        """Nodes with a job that has no outcome yet."""
        return list(dict.fromkeys(node for job_id, node in self.nodes.items() if job_id in self.open))

    @property
    def stopped_by_others(self) -> set[str]:
        """Nodes with a job that somebody else has stopped."""
        return {self.nodes[job_id] for job_id in self.outcomes_elsewhere if job_id in self.open}

    def open_on(self, node: str) -> list[str]:
        """The jobs of that node that have no outcome yet."""
        return [job_id for job_id, where in self.nodes.items() if where == node and job_id in self.open]

    def take(self, message: dict[str, Any]) -> None:
        """One message of an agent."""
        said = message["say"]
        if said == "finished":
            outcome = msgspec.convert(message["outcome"], Outcome)
            if outcome.stopped and not self._asked_to_stop() and self.nodes.get(outcome.job) in self.leased:
                self.outcomes_elsewhere[outcome.job] = outcome
            elif outcome.job in self.returned:
                self._held[outcome.job] = outcome
            else:
                self.finish(outcome)
        elif said == "grown" and message["job"] in self.returned:
            self.returned[message["job"]].take(message)
        elif said == "returned" and message["job"] in self._held:
            self._release(message["job"], message["files"])
        elif said == "started":
            self.listener.on_started(message["job"], message["pid"])
        elif said == "output":
            self.listener.on_output(message["job"], message["text"])
        elif said == "progress":
            self.listener.on_progress(message["job"], message["values"])

    def _release(self, job_id: str, sizes: dict[str, int]) -> None:
        outcome, problem = self._held.pop(job_id), self.returned[job_id].finish(sizes)
        if problem is not None:  # what was measured is unknown, so it must not look like a success
            outcome = msgspec.structs.replace(outcome, exit_code=outcome.exit_code or None, detail=problem)
        self.finish(outcome)

    def finish(self, outcome: Outcome) -> None:
        if outcome.job in self.returned:
            self.returned[outcome.job].close()
        if outcome.job in self.open:  # a supervisor killed after its last message is reported twice
            self.open.remove(outcome.job)
            self.outcomes[outcome.job] = outcome
            self.listener.on_finished(outcome)

"""Runs jobs on nodes that a scheduler lends: asked for when the first is needed, given back at the end."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import MAKES_DATA, Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.system import Node, System
from benchwright.executors.base import Listener, Site
from benchwright.executors.connection import Connection
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.local import HERE
from benchwright.executors.observer import Observer
from benchwright.executors.ssh import ClusterExecutor


class AllocatedExecutor(ClusterExecutor):
    """A subclass says how to get nodes and how to give them back. `scheduler`: its name, in messages."""

    scheduler: str

    def __init__(self, site: Site, python: str = sys.executable) -> None:
        super().__init__(System(), python, site=site)
        self._names: list[str] = []  # of the nodes that were granted
        self._listener: Listener = Listener()
        self._others: list[Mapping[str, tuple[str, ...]]] = []  # when the last launch began, and when it ended

    @abstractmethod
    def _grant(self) -> Mapping[str, Connection]:
        """Wait for nodes, until `_stops`; CannotMeasure if there will be none. Connections by the names of the nodes."""

    @abstractmethod
    def _release(self) -> None:
        """Give the nodes back, and take back a request for some."""

    def allocate(self, folder: str, listener: Listener) -> tuple[Node, ...]:
        """See `Allocating`."""
        self._listener = listener
        self._allocate()
        if len(self._names) == 1:
            return ()
        return tuple(
            Node(name=name, ip=self._connections[granted].node.ip, main=place == 0)
            for place, (name, granted) in enumerate(zip(self._planned_names(), self._names, strict=False))
        )

    def others_on(self, job: Job) -> tuple[str, ...]:
        """See `Allocating`."""
        return tuple(dict.fromkeys(other for seen in self._others for other in seen.get(self._node_of(job), ())))

    def _jobs_of_others(self) -> Mapping[str, tuple[str, ...]]:
        """By node, as last seen; none, where whole nodes are lent."""
        return {}

    def lends(self) -> int:
        """See `Lending`."""
        return self._site.nodes

    def _planned_names(self) -> list[str]:
        """Names of the nodes in plans, the same in every attempt: as in the system file, or by their places."""
        asked = [node.name for node in self._site.system.nodes]
        return asked + [f"node{place + 1}" for place in range(len(asked), len(self._names))]

    def machine(self) -> Machine:
        self._allocate()
        # While they are looked at, as if they saw our files: the two take as long as one.
        early = [node for node in self._names if node not in self._machines and node not in self._agents]
        self._agents |= {node: self._start_agent(node) for node in early}
        machine = super().machine()
        for node in self._apart.keys() & set(early):
            self._agents.pop(node).abandon()
        # Nodes that no agent uses are released, and what comes before the first job may take long.
        if problems := self._start_agents(self._names):
            raise CannotMeasure("; ".join(problems.values()))
        return machine

    def usable(self) -> tuple[dict[str, Machine], dict[str, str]]:
        self._allocate()
        found, problems = super().usable()
        return found, problems | self._start_agents(list(found))  # as above

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        if not self._stops and any(job.phase != MAKES_DATA for job in jobs):
            self._allocate()
        self._others = [self._jobs_of_others()]
        outcomes = super().run(jobs, listener)
        self._others.append(self._jobs_of_others())
        return outcomes

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        self._allocate()
        return super().end_leftovers(marks)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._release()

    def _node_of(self, job: Job) -> str:
        """Prepare scripts run here: nodes are for measuring, and often have no network."""
        return HERE if job.phase == MAKES_DATA else super()._node_of(job)

    def _node_named_by(self, job: Job) -> str:
        """Maps the names in plans to the granted nodes, in order."""
        if not self._names:
            return HERE
        granted = dict(zip(self._planned_names(), self._names, strict=False))
        return job.node if job.node in self._connections else granted.get(job.node, self._names[0])

    def _allocate(self) -> None:
        if self._names:
            return
        try:
            with stops_on_signals(self.stop):
                self._connections |= self._grant()
        finally:
            if isinstance(self._listener, Observer):
                self._listener.on_step_done(self.scheduler)
        self._names = list(self._connections)
        nodes = tuple(connection.node for connection in self._connections.values())
        self._system = msgspec.structs.replace(self._site.system, nodes=nodes)

    def _tell(self, what: str) -> None:
        if isinstance(self._listener, Observer):
            self._listener.on_step(self.scheduler, what)

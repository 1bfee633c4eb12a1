"""Runs jobs on several nodes: on this machine directly, on others through agents over connections.

Before a node gets its first job it is checked whether it sees the base folder, benchwright and its Python at the same paths,
on a shared file system. To a node that does not, the agent and all that jobs use are sent, and their streams come back.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import msgspec

from benchwright.agent.folder_digest import folder_digest
from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.errors import CannotMeasure
from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import MAKES_DATA, Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.system import Node, System
from benchwright.executors.agent_executor import AgentExecutor, OpenJobs
from benchwright.executors.agent_process import SILENCE_S, AgentProcess, agent_words, listen, new_token
from benchwright.executors.base import Listener, Site
from benchwright.executors.connection import Look, Visit, read_look, wait_for
from benchwright.executors.lease import LeaseKeeper
from benchwright.executors.local import HERE
from benchwright.executors.remote_node import RemoteNode
from benchwright.executors.returned_files import ReturnedFiles
from benchwright.executors.transfer.environments import NoPython
from benchwright.executors.via_connection import ViaConnection, connection_to

_VISIT_S = 60.0
_START_S = 60.0
REFUSED = "not started, because another node cannot be used: "
_SWEEP_WAIT_S = 10.0  # for supervisors without an agent to end their jobs themselves


class ClusterExecutor(AgentExecutor):
    """Before anything runs, the site's folder and the folders of the jobs are checked to be shared; else they are sent.

    The jobs of one `run` start together, and only if all their nodes can be used. If a node is lost later, its jobs get
    outcomes that say so; the other nodes go on.
    """

    def __init__(
        self,
        system: System,
        python: str = sys.executable,
        *,
        site: Site | None = None,
        ssh: Sequence[str] = ("ssh",),
    ) -> None:
        super().__init__()
        self._system = system
        self._python = python
        self._site = site or Site()
        self._connections = {
            node.name: connection_to(node, system.sshkey, python, ssh) for node in system.nodes if not node.local
        }
        self._here = {HERE, *(node.name for node in system.nodes if node.local)}
        self._machines: dict[str, Machine] = {}
        self._shared: set[tuple[str, str]] = set()  # (node, folder) that were checked
        self._apart: dict[str, RemoteNode] = {}  # nodes that share no file system with this machine
        self.without_python: set[str] = set()  # nodes that can run plain programs only
        self._left_behind: set[str] = set()  # nodes where processes may still run
        self._lease = LeaseKeeper(self._agents.values)

    def machine(self) -> Machine:
        """That of the main node."""
        main = self._system.main_node
        return self._machine_here() if main is None or main.local else self.machines()[main.name]

    def machines(self) -> dict[str, Machine]:
        """The machine of each node of the system file; CannotMeasure says which nodes cannot be used, and why."""
        if problems := self._look_at([name for name in self._connections if name not in self._machines], (), ()):
            raise CannotMeasure("; ".join(problems.values()))
        names = [node.name for node in self._system.nodes] or [HERE]
        return {name: self._machine_here() if name in self._here else self._machines[name] for name in names}

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self._system.nodes

    def usable(self) -> tuple[dict[str, Machine], dict[str, str]]:
        """The machines of nodes that can be used, and why others cannot."""
        problems = self._look_at([name for name in self._connections if name not in self._machines], (), ())
        names = [node.name for node in self._system.nodes if node.name not in problems]
        return {n: self._machine_here() if n in self._here else self._machines[n] for n in names}, problems

    def ask_all(self, nodes: Sequence[str], *question: str) -> dict[str, dict[str, Any] | str]:
        """The answers of these nodes to a question (see `node_probe`), asked of all at once, or why there is none."""
        here = {n: ViaConnection(Node(name=n, ip=n, via=("env",)), self._python) for n in nodes if n in self._here}
        visits = {n: (here.get(n) or self._connections[n]).start_visit(*question) for n in nodes}
        wait_for(list(visits.values()), _VISIT_S, lambda: self._stops > 0)
        answers = {node: visit.finish() for node, visit in visits.items()}
        return {node: why if answer is None else answer for node, (answer, why) in answers.items()}

    def _machine_here(self) -> Machine:
        if HERE not in self._machines:
            self._machines[HERE] = read_machine()
        return self._machines[HERE]

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        outcomes = super().run(jobs, listener)
        return [self._with_files(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]

    def _with_files(self, job: Job, outcome: Outcome) -> Outcome:
        """Once the files it was to make are here, too."""
        node = self._apart.get(self._node_named_by(job))
        if node is None or not job.fetch or outcome.exit_code != 0:
            return outcome
        try:
            node.fetch(job)
        except CannotMeasure as error:
            return msgspec.structs.replace(outcome, exit_code=None, detail=str(error))
        return outcome

    def _node_of(self, job: Job) -> str:
        node = self._node_named_by(job)
        return HERE if job.phase == MAKES_DATA and self._is_apart(node) else node

    def _node_named_by(self, job: Job) -> str:
        return HERE if job.node in self._here else job.node

    def _is_apart(self, node: str) -> bool:
        """Prepare scripts run here; their files are sent to nodes that do not see them."""
        if node in self._connections and node not in self._machines:
            self._look_at([node], (), ())  # why it cannot be used is said when something is to run there
        return node in self._apart

    def _bring_up(self, launch: OpenJobs) -> None:
        nodes = launch.open_nodes()
        problems = {
            node: f"there is no node '{node}' in the system file"
            for node in nodes
            if node != HERE and node not in self._connections
        }
        problems = (
            problems
            or self._check(nodes, launch.folders, launch.probes)
            or self._bring(nodes, launch)
            or self._start_agents(nodes)
        )
        if self._stops:
            for job_id in list(launch.open):
                launch.finish(Outcome(job=job_id, stopped=True))
        elif problems:
            _refuse(launch, problems)

    def _check(self, nodes: Sequence[str], folders: Sequence[str], probes: Sequence[str]) -> dict[str, str]:
        """Why these nodes cannot be used, by node."""
        wanted = (*folders, *probes)
        others = [node for node in nodes if node != HERE and node not in self._apart]
        return self._look_at(
            [n for n in others if any((n, place) not in self._shared for place in wanted)], folders, probes
        )

    def _bring(self, nodes: Sequence[str], launch: OpenJobs) -> dict[str, str]:
        """Sends what jobs use to nodes that do not see it, to all at once; returns why that failed for some."""
        problems: dict[str, str] = {}

        def bring(node: str) -> None:
            jobs = [launch.jobs[job_id] for job_id in launch.open_on(node)]
            try:
                self._apart[node].bring(jobs, launch.listener)
            except CannotMeasure as error:
                problems[node] = str(error)

        threads = [threading.Thread(target=bring, args=(node,)) for node in nodes if node in self._apart]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return problems

    def _order(self, job: Job, launch: OpenJobs) -> dict[str, object]:
        node = self._apart.get(launch.nodes[job.id])
        if node is None:
            return super()._order(job, launch)
        launch.returned[job.id] = ReturnedFiles(job)
        return {"do": "run", "job": msgspec.to_builtins(node.relocated(job)), "return": True}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lease.stop()
        super().__exit__(kind, error, trace)
        for node in self._apart.values():
            node.clean()

    def _look_at(self, nodes: Sequence[str], folders: Sequence[str], probes: Sequence[str]) -> dict[str, str]:
        """Visits nodes, all at once, and keeps what they are. Returns why some cannot be used.

        `probes`: folders of benchprobe, which must be the same there as here.
        """
        if not nodes:
            return {}
        folders = list(dict.fromkeys([*folders, *([self._site.folder] if self._site.folder else [])]))
        token = new_token()
        files = [os.path.join(folder, f".node-check-{token}") for folder in folders]
        try:
            for file in files:
                os.makedirs(os.path.dirname(file), exist_ok=True)
                with open(file, "w", encoding="utf-8") as handle:
                    handle.write(token)
            digests = {probe: folder_digest(probe) for probe in probes}
            visits = {node: self._connections[node].start_visit("look", *files, "--", *probes) for node in nodes}
            wait_for(list(visits.values()), _VISIT_S, lambda: self._stops > 0)
            looks = {n: read_look(self._connections[n], visit, folders, token, digests) for n, visit in visits.items()}
        except OSError as error:
            raise CannotMeasure(f"{error.filename}: {error.strerror}; choose another folder with --base") from error
        finally:
            for file in files:
                with suppress(OSError):
                    os.unlink(file)
        problems = self._keep(looks, (*folders, *probes))
        apart = self._outfit([node for node, look in looks.items() if look.is_apart])
        return {node: why for node, why in (problems | apart).items() if why}

    def _keep(self, looks: Mapping[str, Look], folders: Sequence[str]) -> dict[str, str]:
        for node, look in looks.items():
            if look.machine is not None:
                self._machines[node] = look.machine
                self._shared |= {(node, folder) for folder in folders}
        return {node: look.problem for node, look in looks.items() if look.problem is not None}

    def _outfit(self, nodes: Sequence[str]) -> dict[str, str]:
        """Sends the agent to nodes that do not see our files, and asks them what they are. Returns why they cannot be used,
        or an empty string."""
        problems: dict[str, str] = {}
        for name in nodes:
            connection = self._connections[name]
            node = RemoteNode(connection, self._site, stopped=lambda: self._stops > 0)
            try:
                node.outfit()
            except CannotMeasure as error:
                problems[name] = str(error)
                if isinstance(error, NoPython):
                    self.without_python.add(name)
                continue
            visit = connection.start_visit("look")
            wait_for([visit], _VISIT_S, lambda: self._stops > 0)
            look = read_look(connection, visit, (), "", {})
            problems[name] = look.problem or ""
            if look.machine is not None:
                self._machines[name] = look.machine
                self._apart[name] = node
        return problems

    def _start_agents(self, nodes: Sequence[str]) -> dict[str, str]:
        """Ensures an agent that listens on each node; returns why some have none."""
        old = [node for node in nodes if node in self._agents]
        for node in old:
            self._agents[node].greet()
        self._await(old)  # lost ones are replaced
        new = [node for node in nodes if node not in self._agents]
        for node in new:
            self._agents[node] = self._start_agent(node)
        return self._await(new)

    def _await(self, nodes: Sequence[str]) -> dict[str, str]:
        """Until the agents of these nodes have answered; drops the others, and returns why."""
        deadline = time.monotonic() + _START_S
        problems: dict[str, str] = {}
        while not self._stops:
            awaited = {n: self._agents[n] for n in nodes if n in self._agents and not self._agents[n].is_attentive}
            if not awaited:
                break
            listen(awaited.values(), self._wake_read, 0.2)
            for node, agent in awaited.items():
                late = time.monotonic() > deadline
                if late or agent.is_silent:
                    del self._agents[node]
                    last_words = agent.abandon()
                    problems[node] = self._late(node) if late else self._describe_loss(node, agent, last_words)
        return problems

    def _start_agent(self, node: str) -> AgentProcess:
        token = new_token()
        if node == HERE:
            return AgentProcess.start(agent_words(self._python), token)
        self._lease.start()
        words = self._connections[node].agent_words(token)
        return AgentProcess.start(words, token, sweep=lambda group: self._sweep_node(node, Mark(token, group)))

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        here = super().end_leftovers(marks)
        if not marks or not self._connections:
            return here
        visits = {
            node: connection.start_visit("sweep", str(_SWEEP_WAIT_S), *map(_as_word, marks))
            for node, connection in self._connections.items()
        }
        wait_for(list(visits.values()), _VISIT_S, lambda: self._stops > 0)
        answers = {node: visit.finish()[0] for node, visit in visits.items()}
        answered = {node: answer for node, answer in answers.items() if answer is not None}
        return Leftovers(
            ended=(*here.ended, *(f"{name} on {node}" for node, x in answered.items() for name in x["ended"])),
            left=(*here.left, *(f"{name} on {node}" for node, x in answered.items() for name in x["left"])),
            unknown=tuple(node for node in answers if node not in answered),
            of_others=here.of_others,
        )

    def _late(self, node: str) -> str:
        return f"{self._connections.get(node, 'this machine')}: its agent did not start within {_START_S:g} s"

    def _sweep_node(self, node: str, mark: Mark) -> None:
        """Ends what a lost agent left on its node; the outcomes say if that failed."""
        visit: Visit = self._connections[node].start_visit("sweep", str(_SWEEP_WAIT_S), _as_word(mark))
        wait_for([visit], _VISIT_S, lambda: False)
        answer, _ = visit.finish()
        (self._left_behind.discard if answer is not None and not answer["left"] else self._left_behind.add)(node)

    def _describe_loss(self, node: str, agent: AgentProcess, last_words: str) -> str:
        if node == HERE:
            return self._describe_loss_here(agent, last_words)
        connection = self._connections[node]
        code = connection.ended(agent.exit_code) if agent.exit_code is not None else -9
        if not agent.was_ready:
            return connection.explain(code, agent.printed)
        if agent.is_mute:
            detail = f"{connection}: it has not answered for {SILENCE_S:g} s"
        elif last_words or code < 0:
            detail = f"the connection was lost while it ran: {connection.explain(code, agent.printed)}"
        else:
            detail = f"the agent was killed on {connection}"
        if node in self._left_behind:
            detail += "; the node does not answer, so its processes may still be running"
        return detail


def _as_word(mark: Mark) -> str:
    return f"{mark.token}={mark.group or ''}"


def _refuse(launch: OpenJobs, problems: Mapping[str, str]) -> None:
    """Starts nothing unless everything can start: processes of one launch may wait for each other."""
    others = REFUSED + "; ".join(problems.values())
    for job_id in list(launch.open):
        launch.finish(Outcome(job=job_id, detail=problems.get(launch.nodes[job_id], others)))

"""`--on ssh` and `--on ssh:HOST`: the nodes of a system file, or one machine, whatever it is.

A machine with a Python of our version runs jobs through an agent, which is sent there if need be. Any other Linux board runs
plain programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import msgspec

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.system import Node, System
from benchwright.executors.base import Executor, Listener, Site
from benchwright.executors.boards.executor import BoardExecutor
from benchwright.executors.boards.shell_board import ShellBoard
from benchwright.executors.registry import EXECUTORS
from benchwright.executors.ssh import ClusterExecutor
from benchwright.executors.via_connection import connection_to

_ADDRESS = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>[^@:\s/]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d+))?")
_PYTHON = "python3"


class _OneNode(ClusterExecutor):
    """Runs all jobs on the one node of its system."""

    def _node_named_by(self, job: Job) -> str:
        return self._system.nodes[0].name


class HostExecutor:
    """Runs all jobs on one machine. How is decided with the first question to it: connecting takes time."""

    def __init__(self, node: Node, site: Site, ssh: Sequence[str] = ("ssh",)) -> None:
        self._node = node
        self._site = site
        self._ssh = tuple(ssh)
        self._open = ExitStack()
        self._chosen: Executor | None = None
        self._stops = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._chosen = None
        self._open.close()

    def machine(self) -> Machine:
        return self._executor().machine()

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        return self._executor().end_leftovers(marks)

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        if self._stops or not jobs:
            return [Outcome(job=job.id, stopped=True) for job in jobs]
        return self._executor().run(jobs, listener)

    def stop(self) -> None:
        self._stops += 1
        if self._chosen is not None:
            self._chosen.stop()

    def _executor(self) -> Executor:
        if self._chosen is None:
            self._chosen = self._choose()
        return self._chosen

    def _choose(self) -> Executor:
        site = self._site
        system = System(nodes=(self._node,), sshkey=site.system.sshkey)
        cluster = _OneNode(system, site=site, ssh=self._ssh)
        with ExitStack() as trial:
            trial.enter_context(cluster)
            self._chosen = cluster  # so that it can be stopped
            try:
                cluster.machine()
            except CannotMeasure:
                self._chosen = None
                if self._node.name not in cluster.without_python:
                    raise
            else:
                self._open.push(trial.pop_all())
                return cluster
        connection = connection_to(self._node, site.system.sshkey, _PYTHON, self._ssh)
        return self._open.enter_context(
            BoardExecutor(ShellBoard(connection, site.folder_there, site.digests), base=site.folder)
        )


def open_executor(argument: str, site: Site) -> Executor:
    """`--on ssh:[USER@]HOST[:PORT]`, or the name of a node with `via`: all jobs there. `--on ssh`: each where its suite and
    the system file say."""
    if not argument:
        if not any(not node.local for node in site.system.nodes):
            raise InvalidInput(
                "no system file names a node", where="--on ssh", remedy="write --on ssh:HOST, or give --system FILE"
            )
        return ClusterExecutor(site.system, site=site)
    system = site.system if site.system.nodes or site.system.sshkey else site.named_system()
    via = next((node for node in system.nodes if node.via and node.name == argument), None)
    return HostExecutor(via or node_named(argument), msgspec.structs.replace(site, system=system))


def open_nodes(on: str, site: Site) -> ClusterExecutor:
    """All nodes that `--on` names, at once: `ssh:HOST,HOST`, those of the system file, or what a scheduler has."""
    name, _, argument = on.partition(":")
    if name == "ssh" and argument:
        named = {node.name: node for node in site.system.nodes}
        nodes = tuple(named.get(word) or node_named(word) for word in argument.split(","))
        system = msgspec.structs.replace(site.system, nodes=nodes)
        return ClusterExecutor(system, site=site)
    executor = EXECUTORS.load(name, where="--on")(argument, site)
    if not isinstance(executor, ClusterExecutor):
        raise InvalidInput(
            f"'{on}' has no nodes to compare", where="--on", remedy="write slurm, ray, ssh or ssh:HOST,HOST"
        )
    return executor


def names_nodes(on: str | None) -> bool:
    """Whether `--on` names several nodes, which `open_nodes` opens."""
    return on is not None and on.partition(":")[0] in ("ssh", "slurm", "ray")


def node_on(on: str) -> Node:
    """The machine that `--on ssh:HOST` means; the name of the executor may be left out."""
    return node_named(on.removeprefix("ssh:"))


def node_named(address: str) -> Node:
    """The machine at `[USER@]HOST[:PORT]`; InvalidInput for anything else."""
    match = _ADDRESS.fullmatch(address)
    port = match["port"] if match is not None else None
    if match is None or int(port or 1) > 65535:
        raise InvalidInput(f"'{address}' is not a host", where="--on ssh", remedy="write ssh:[USER@]HOST[:PORT]")
    host = match["host"].strip("[]")
    return Node(name=host, ip=host, user=match["user"], port=int(port) if port else None, main=True)

"""Nodes for independent work: a scheduler lends them one by one, and each is used as soon as it is granted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol, Self, runtime_checkable

from benchwright.executors.allocated import AllocatedExecutor
from benchwright.executors.allocation import read_allocations
from benchwright.executors.base import Site
from benchwright.executors.connection import Connection
from benchwright.executors.observer import Observer


class Lender(ABC):
    """Asks for nodes when it is entered. On exit all are given back, and those not granted yet are no longer asked for."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether more nodes may be granted."""

    @abstractmethod
    def granted(self) -> list[Connection]:
        """Nodes granted since the last call, which is repeated as long as there is work; CannotMeasure if none was granted
        and none will be."""

    @abstractmethod
    def give_back(self, node: str) -> None:
        """The node is no longer needed, or it is lost."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...


@runtime_checkable
class Lending(Protocol):
    """An executor whose scheduler can lend nodes one by one."""

    def lends(self) -> int:
        """How many nodes at most."""
        ...

    def lender(self, folder: str, observer: Observer) -> Lender:
        """`folder` names the nodes from now on."""
        ...


class LentNode(AllocatedExecutor):
    """Runs jobs on one node that a `Lender` was granted, which gives it back. `folder`: the lender's."""

    scheduler = "node"

    def __init__(self, site: Site, connection: Connection, folder: str) -> None:
        super().__init__(site)
        self._connection = connection
        self._folder = folder

    def _jobs_of_others(self) -> Mapping[str, tuple[str, ...]]:
        return {node: jobs for held in read_allocations(self._folder) for node, jobs in held.others.items()}

    def _grant(self) -> Mapping[str, Connection]:
        return {self._connection.node.name: self._connection}

    def _release(self) -> None:
        """Its lender does that."""

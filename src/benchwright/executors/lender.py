"""Nodes for independent work: a scheduler lends them one by one, and each is used as soon as it is granted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from benchwright.executors.allocated import AllocatedExecutor
from benchwright.executors.base import Listener, Site
from benchwright.executors.connection import Connection


class Lender(ABC):
    """Asks for nodes when it is entered. On exit all are given back, and those not granted yet are no longer asked for."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether more nodes may be granted."""

    @abstractmethod
    def granted(self) -> list[Connection]:
        """Nodes granted since the last call, which is repeated while `waits`; CannotMeasure if none was granted and none
        will be."""

    @abstractmethod
    def give_back(self, node: str) -> None:
        """The node is no longer needed, or it is lost."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class Lending(Protocol):
    """An executor whose scheduler can lend nodes one by one."""

    def lender(self, folder: str, listener: Listener) -> Lender:
        """`folder` names the nodes from now on."""
        ...


class LentNode(AllocatedExecutor):
    """Runs jobs on one node that a `Lender` was granted, which gives it back."""

    scheduler = "node"

    def __init__(self, site: Site, connection: Connection) -> None:
        super().__init__(site)
        self._connection = connection

    def _grant(self) -> Mapping[str, Connection]:
        return {self._connection.node.name: self._connection}

    def _release(self) -> None:
        """Its lender does that."""

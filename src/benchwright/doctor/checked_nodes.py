"""Measurements of the nodes of a cluster."""

from __future__ import annotations

import msgspec

from benchwright.core.checkup import Noise
from benchwright.core.health import Health
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.run import Result


class NodeRounds(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of nodes in rounds. `skipped`: benchmark → why. `lost`: node → why it takes no part any more."""

    results: dict[str, tuple[Result, ...]]
    skipped: dict[str, str] = {}
    lost: dict[str, str] = {}


class CheckedNode(msgspec.Struct, frozen=True, kw_only=True):
    """`costs`: metric → one value for each round, in seconds or seconds an item. `problem`: why it could not be measured."""

    name: str
    make: str
    machine: Machine | None = None
    health: Health | None = None
    notes: tuple[Note, ...] = ()  # about its state, and about its launches
    costs: dict[str, tuple[float, ...]] = {}
    noise: tuple[Noise, ...] = ()
    problem: str | None = None


class NodePair(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds`: of an all-reduce between the two, for each batch; none if it failed, and `problem` says why."""

    nodes: tuple[str, str]
    seconds: tuple[float, ...] = ()
    problem: str | None = None

    @property
    def name(self) -> str:
        return " – ".join(self.nodes)


class ClusterCheckup(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured; what follows from it: `doctor.cluster_verdict`."""

    on: str
    started: str
    nodes: tuple[CheckedNode, ...]
    pairs: tuple[NodePair, ...] = ()
    skipped: dict[str, str] = {}  # what was not measured on any node, and why

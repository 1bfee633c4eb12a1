"""Runs on two nodes of a cluster can be compared if `doctor --on` has measured how much nodes of their make differ."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchwright.core.errors import BenchwrightError
from benchwright.core.run import Run
from benchwright.core.whole_file import write_whole
from benchwright.executors.ssh_host import names_nodes
from benchwright.runs.run_folder import RunFolder

FILE = "node-spreads.json"  # in the base folder
_APART = 2.77  # times the standard deviation between nodes: two of them differ by less in 95 % of cases


class NodeSpread(msgspec.Struct, frozen=True, kw_only=True):
    """`spread`: standard deviation between nodes of one make, as a fraction, in the metric in which they differ most."""

    spread: float
    nodes: int
    measured: str  # when

    @property
    def allowance(self) -> float:
        """By how much two nodes may differ."""
        return _APART * self.spread


def read_spreads(base: str | Path) -> dict[str, NodeSpread]:
    """By the fingerprints of machines; none if the file is not there or damaged."""
    try:
        with open(os.path.join(base, FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, NodeSpread])
    except (OSError, msgspec.MsgspecError):
        return {}


def keep_spreads(base: str | Path, found: Mapping[str, NodeSpread]) -> None:
    """Newer ones replace older ones of the same make."""
    if found:
        write_whole(os.path.join(base, FILE), msgspec.json.encode(read_spreads(base) | dict(found)), sync=False)


def on_two_nodes(control: Run, treatment: Run) -> bool:
    """Whether they ran on different nodes of a cluster, as far as is known."""
    if control.machine.hostname == treatment.machine.hostname:
        return False
    return any(_was_on_a_node(run) for run in (control, treatment))


def _was_on_a_node(run: Run) -> bool:
    try:
        return names_nodes(RunFolder(Path(run.folder)).read_plan().options.on)
    except (BenchwrightError, OSError):
        return False  # imported, or of another base folder


def spread_for(control: Run, treatment: Run) -> NodeSpread | None:
    """The spread that `doctor` measured for the make of both; None if it has not, or they are of two makes."""
    if control.machine.fingerprint != treatment.machine.fingerprint:
        return None
    known = (read_spreads(Path(run.folder).parent.parent) for run in (control, treatment))
    return next((k[control.machine.fingerprint] for k in known if control.machine.fingerprint in k), None)

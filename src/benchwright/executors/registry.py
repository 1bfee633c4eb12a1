"""Which executors there are, and opening the one that `--on` names."""

from __future__ import annotations

from benchwright.core.errors import InvalidInput
from benchwright.core.registry import Registry
from benchwright.core.system import System
from benchwright.executors.base import ENTRY_POINT_GROUP, Allocating, Executor, OpenExecutor, Site

EXECUTORS: Registry[OpenExecutor] = Registry(ENTRY_POINT_GROUP, "executor")


def open_executor(on: str | None, site: Site) -> Executor:
    """The executor that `on` names, `NAME` or `NAME:ARGUMENT`; None: the nodes of the system file, else this machine."""
    opener, argument = _chosen(on, site.system)
    executor = opener(argument, site)
    if (site.nodes != 1 or site.slurm) and not isinstance(executor, Allocating):
        raise InvalidInput(
            "--nodes and --slurm are for schedulers", where="--on", remedy="write --on slurm, or leave them out"
        )
    return executor


def is_here(on: str | None, system: System | None = None) -> bool:
    """Whether the jobs of that executor run on this machine; nothing is opened. InvalidInput if there is no such executor."""
    opener, _ = _chosen(on, system or System())
    return bool(vars(opener).get("runs_here"))


def joins(on: str | None) -> bool:
    """Whether it names an allocation that the user has, of which all nodes are meant."""
    return on is not None and on.startswith("slurm:job=")


def _chosen(on: str | None, system: System) -> tuple[OpenExecutor, str]:
    if on is None:
        on = "ssh" if any(not node.local for node in system.nodes) else "local"
    name, _, argument = on.partition(":")
    return EXECUTORS.load(name, where="--on"), argument

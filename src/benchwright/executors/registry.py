"""Which executors there are, and opening the one that `--on` names."""

from __future__ import annotations

from benchwright.core.plugins.registry import Registry
from benchwright.executors.base import ENTRY_POINT_GROUP, Executor, OpenExecutor, Site

EXECUTORS: Registry[OpenExecutor] = Registry(ENTRY_POINT_GROUP, "executor")


def open_executor(on: str | None, site: Site) -> Executor:
    """The executor that `on` names, `NAME` or `NAME:ARGUMENT`; None: the nodes of the system file, else this machine."""
    if on is None:
        on = "ssh" if any(not node.local for node in site.system.nodes) else "local"
    name, _, argument = on.partition(":")
    return EXECUTORS.load(name, where="--on")(argument, site)

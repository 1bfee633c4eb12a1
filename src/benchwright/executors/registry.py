"""Which executors there are, and opening the one that `--on` names."""

from __future__ import annotations

from benchwright.core.plugins.registry import Registry
from benchwright.executors.base import ENTRY_POINT_GROUP, Executor, OpenExecutor, Site

EXECUTORS: Registry[OpenExecutor] = Registry(
    ENTRY_POINT_GROUP,
    "executor",
    {
        "local": "benchwright.executors.local:open_executor",
        "adb": "benchwright.executors.adb:open_executor",
        "ssh": "benchwright.executors.ssh_host:open_executor",
        "fake": "benchwright.executors.fake:open_executor",
    },
)


def open_executor(on: str | None, site: Site) -> Executor:
    """The executor that `on` names, `NAME` or `NAME:ARGUMENT`; None: the nodes of the system file, else this machine."""
    if on is None:
        on = "ssh" if any(not node.local for node in site.system.nodes) else "local"
    name, _, argument = on.partition(":")
    return EXECUTORS.load(name, where="--on")(argument, site)

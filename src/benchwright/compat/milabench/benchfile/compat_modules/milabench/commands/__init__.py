"""The plans that a benchfile builds: trees of commands, whose words benchwright asks for."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from ..utils import merge
from . import nodes
from .launchers import (
    AccelerateAllNodes,
    AccelerateLaunchCommand,
    ForeachNode,
    TorchrunAllGPU,
    TorchrunAllNodes,
    TorchRunCommand,
    max_node_count,
    node_address,
)
from .nodes import (
    VOIR_CONFIG,
    ActivatorCommand,
    CmdCommand,
    Command,
    DockerRunCommand,
    ListCommand,
    PackCommand,
    SequenceCommand,
    SimpleCommand,
    SingleCmdCommand,
    SSHCommand,
    VoidCommand,
    VoirCommand,
    WorkingDir,
    WrapperCommand,
)

__all__ = [
    "VOIR_CONFIG",
    "AccelerateAllNodes",
    "AccelerateLaunchCommand",
    "ActivatorCommand",
    "CmdCommand",
    "Command",
    "DockerRunCommand",
    "ForeachNode",
    "ListCommand",
    "PackCommand",
    "SSHCommand",
    "SequenceCommand",
    "SimpleCommand",
    "SingleCmdCommand",
    "TorchRunCommand",
    "TorchrunAllGPU",
    "TorchrunAllNodes",
    "VoidCommand",
    "VoirCommand",
    "WorkingDir",
    "WrapperCommand",
    "max_node_count",
    "node_address",
]


class NJobs(ListCommand):
    """The same command several times, each with all devices."""

    def __init__(self, executor: Any, n: int, gpus: Any = None, **options: Any) -> None:
        devices = [gpu["device"] for gpu in gpus or ()]
        made = []
        for job in range(n):
            tag = [*executor.pack.config["tag"], str(job)]
            made.append(executor.copy(executor.pack.copy({"tag": tag, "job-number": job, "devices": devices})))
        super().__init__(*made, **options)


class PerGPU(ListCommand):
    """The same command once on each device; once where there is none."""

    def __init__(self, executor: Any, gpus: Any = None, **options: Any) -> None:
        made = []
        for gpu in gpus or [{"device": 0}]:
            device = gpu["device"]
            tag = [*executor.pack.config["tag"], f"D{device}"]
            made.append(executor.copy(executor.pack.copy({"tag": tag, "device": device, "devices": [device]})))
        super().__init__(*made, **options)


class ClientServer(ListCommand):
    """A server, and the client that measures it."""

    def __init__(self, pack: Any, client: Any, server: Any, **options: Any) -> None:
        client.set_run_options(role="client")
        server.set_run_options(role="server")
        super().__init__(client, server)

    @staticmethod
    def new_pack(pack: Any, tag: str, has_logs: bool = True) -> Any:
        return pack.copy({"tag": [*pack.config["tag"], tag, *([] if has_logs else ["nolog"])]})

    @staticmethod
    def new_client_pack(pack: Any, has_logs: bool = True) -> Any:
        return ClientServer.new_pack(pack, "client", has_logs)

    @staticmethod
    def new_server_pack(pack: Any, has_logs: bool = True) -> Any:
        return ClientServer.new_pack(pack, "server", has_logs)


def clone_with(config: dict[str, Any], change: dict[str, Any]) -> Any:
    return merge(copy.deepcopy(config), change)


@contextlib.contextmanager
def disable_voir(enabled: bool) -> Iterator[None]:
    """Within it, voir runs the commands only if `enabled`."""
    before, nodes.use_voir = nodes.use_voir, enabled
    try:
        yield
    finally:
        nodes.use_voir = before

"""The plans that a benchfile builds: trees of commands, whose words benchwright asks for."""

from __future__ import annotations

import copy
from typing import Any

from .command_nodes import (  # some for benchfiles only
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
from .fs import XPath
from .utils import merge, select_nodes

__all__ = [
    "VOIR_CONFIG",
    "ActivatorCommand",
    "CmdCommand",
    "DockerRunCommand",
    "PackCommand",
    "SSHCommand",
    "SequenceCommand",
    "SimpleCommand",
    "SingleCmdCommand",
    "VoidCommand",
    "VoirCommand",
    "WorkingDir",
    "WrapperCommand",
]
PORT = 29400


class TorchrunAllGPU(WrapperCommand):
    """torchrun over the devices of the job if there are several; benchrun is torchrun with the stream passed on."""

    def __init__(self, executor: Any, *words: Any, module: bool = False, **options: Any) -> None:
        super().__init__(executor, f"{executor.pack.config['dirs']['venv']}/bin/benchrun", *words, **options)
        self.module = module

    def device_count(self) -> int:
        return len(self.pack.config.get("devices") or ())

    def should_wrap(self) -> bool:
        return self.device_count() > 1

    def _argv(self, **kwargs: Any) -> list[Any]:
        if not self.should_wrap():
            return []
        words = list(self.wrapper_argv)
        if self.pack.config["plan"]["method"] != "per_gpu":
            words.append(f"--nproc-per-node={self.device_count()}")
        if self.module:
            return [*words, "-m"]
        first = str(next(iter(self.exec.argv()), ""))
        if first in ("python", "voir"):
            words.append("--no-python")
        elif first and "/" not in first and not XPath(first).exists():
            words.append("-m")
        return [*words, "--"]


TorchRunCommand = TorchrunAllGPU


class ForeachNode(ListCommand):
    """One command on each machine of the benchmark; unwrapped where there is one machine."""

    def __init__(self, executor: Any, use_docker: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.executor = executor

    @property
    def pack(self) -> Any:
        return self.executor.pack

    @property
    def executors(self) -> Any:
        nodes = self._nodes()
        if len(nodes) == 1:
            return [self.single_node()]
        return [self._on(rank, node) for rank, node in enumerate(nodes)]

    def single_node(self) -> Any:
        return self.executor

    def make_new_node_pack(self, rank: int, node: dict[str, Any], base: Any) -> Any:
        tag = [*self.executor.pack.config["tag"], node["name"], *(["nolog"] if rank else [])]
        return base.pack.copy({"tag": tag})

    def make_new_node_executor(self, rank: int, node: dict[str, Any], base: Any) -> Any:
        return base.copy(self.make_new_node_pack(rank, node, base))

    def set_run_options(self, **options: Any) -> Any:
        self.executor.set_run_options(**options)
        return self

    def copy(self, pack: Any) -> Any:
        made = copy.copy(self)
        made.executor = self.executor.copy(pack)
        return made

    def _nodes(self) -> list[dict[str, Any]]:
        config = self.executor.pack.config
        nodes: list[dict[str, Any]] = select_nodes(config["system"]["nodes"], config.get("num_machines") or 1)
        return nodes

    def _on(self, rank: int, node: dict[str, Any]) -> SSHCommand:
        options = {"node_name": node["name"], "node_rank": rank}
        return SSHCommand(self.make_new_node_executor(rank, node, self.executor), node_address(node), **options)


class TorchrunAllNodes(ForeachNode):
    """torchrun on every machine of the benchmark, all of which meet at the main one."""

    def __init__(self, executor: Any, *words: Any, **options: Any) -> None:
        config = executor.pack.config
        nodes = select_nodes(config["system"]["nodes"], config.get("num_machines") or 1)
        host, port = node_address(nodes[0]), option("torchrun.port", int, PORT, config)
        backend = option("torchrun.backend", str, "static", config)
        meeting = [
            f"--nnodes={len(nodes)}",
            f"--rdzv-backend={backend}",
            f"--rdzv-endpoint={host}:{port}",
            f"--master-addr={host}",
            f"--master-port={port}",
            f"--local-ranks-filter={option('torchrun.local_ranks_filder', str, '0', config)}",
        ]
        if config["plan"]["method"] == "per_gpu":
            meeting = []
        super().__init__(TorchrunAllGPU(executor, *meeting, *words, **options))

    def make_new_node_executor(self, rank: int, node: dict[str, Any], base: Any) -> Any:
        made = super().make_new_node_executor(rank, node, base)
        own = [f"--node-rank={rank}", f"--local-addr={node['ip']}", f"--rdzv-conf=rank={rank}"]
        made.wrapper_argv = [*made.wrapper_argv, *own]
        return made


class AccelerateLaunchCommand(Command):
    """accelerate over all devices of all machines."""

    def __init__(self, pack: Any, rank: int = 0, *words: Any, **options: Any) -> None:
        super().__init__(pack, **options)
        self.rank, self.accelerate_argv = rank, words

    def _argv(self, **kwargs: Any) -> list[Any]:
        config = self.pack.config
        nodes = select_nodes(config["system"]["nodes"], config.get("num_machines") or 1)
        devices = len(config.get("devices") or ())
        if devices == 0:
            raise ValueError("accelerate needs a device, and this machine has none")
        mode = ["--multi_gpu"] if devices > 1 else []
        if config.get("use_deepspeed"):
            mode = ["--use_deepspeed", "--deepspeed_multinode_launcher=standard", "--zero_stage=2"]
        return [
            *("accelerate", "launch", "--mixed_precision=bf16", "--dynamo_backend=no"),
            f"--machine_rank={self.rank}",
            f"--num_machines={len(nodes)}",
            *mode,
            f"--gradient_accumulation_steps={config.get('gradient_accumulation_steps', 1)}",
            f"--num_cpu_threads_per_process={self.pack.resolve_argument('--cpus_per_gpu', 4)}",
            f"--main_process_ip={nodes[0]['ip']}",
            f"--main_process_port={option('torchrun.port', int, PORT, config)}",
            f"--num_processes={devices * len(nodes)}",
            *self.accelerate_argv,
        ]


class AccelerateAllNodes(ForeachNode):
    def single_node(self) -> Any:
        several = len(self.executor.pack.config.get("devices") or ()) > 1
        return AccelerateLaunchCommand(self.executor, 0, **self._kwargs) if several else self.executor

    def make_new_node_executor(self, rank: int, node: dict[str, Any], base: Any) -> Any:
        made = super().make_new_node_executor(rank, node, base)
        return AccelerateLaunchCommand(made, rank, **self._kwargs)


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


def node_address(node: dict[str, Any]) -> str:
    return str(node.get("ip") or node.get("hostname"))


def option(name: str, kind: Any, default: Any, config: dict[str, Any]) -> Any:
    """An option of the system file, such as torchrun.port."""
    value: Any = config["system"].get("options") or {}
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return default if value is None else kind(value)


def clone_with(config: dict[str, Any], change: dict[str, Any]) -> Any:
    return merge(copy.deepcopy(config), change)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"benchwright does not know milabench's command '{name}'")

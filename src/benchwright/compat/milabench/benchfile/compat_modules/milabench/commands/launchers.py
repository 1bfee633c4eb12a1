"""Commands that start a program on several devices or machines."""

from __future__ import annotations

import copy
from typing import Any

from ..fs import XPath
from ..system import option
from ..utils import select_nodes
from .nodes import ListCommand, PlanNode, SSHCommand, WrapperCommand

PORT = 29400


class TorchrunAllGPU(WrapperCommand):
    """torchrun over the devices of the job if there are several; benchrun is torchrun with the stream passed on."""

    def __init__(self, executor: Any, *words: Any, module: bool = False, **options: Any) -> None:
        self.binfolder = executor.pack.config["dirs"]["venv"]
        self.module = module
        super().__init__(executor, self.executable, *words, **options)

    @property
    def executable(self) -> str:
        return f"{self.binfolder}/bin/benchrun"

    def get_cmd(self) -> Any:
        return next(iter(self.exec.argv()), None)

    def device_count(self) -> int:
        return len(self.pack.config.get("devices") or ())

    def should_wrap(self) -> bool:
        return self.device_count() > 1

    def _argv(self, **kwargs: Any) -> list[Any]:
        if not self.should_wrap():
            return []
        words = list(self.wrapper_argv)
        if self.pack.config["plan"]["method"] != "per_gpu":
            words.append("--nproc-per-node=gpu")  # torchrun counts those that the job sees
        if self.module:
            return [*words, "-m"]
        first = str(self.get_cmd() or "")
        if first in ("python", "voir"):
            words.append("--no-python")
        elif first and "/" not in first and not XPath(first).exists():
            words.append("-m")
        return [*words, "--"]


TorchRunCommand = TorchrunAllGPU


class ForeachNode(ListCommand):
    """One command on each machine of the benchmark; unwrapped where there is one machine.

    Of each machine's process, the tag is what it was when the plan was built, and the machine's name.
    """

    def __init__(self, executor: Any, use_docker: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.executor = executor
        self.base_tags = executor.pack.config["tag"]
        self.use_docker = use_docker

    @property
    def pack(self) -> Any:
        return self.executor.pack

    @property
    def executors(self) -> Any:
        nodes = machines_of(self.executor.pack.config)
        if len(nodes) == 1:
            return [self.single_node()]
        return [self._on(rank, node) for rank, node in enumerate(nodes)]

    def single_node(self) -> Any:
        return self.executor

    def make_new_node_pack(self, rank: int, node: dict[str, Any], base: Any) -> Any:
        tag = [*self.base_tags, node["name"], *(["nolog"] if rank else [])]
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

    def _on(self, rank: int, node: dict[str, Any]) -> SSHCommand:
        options = {"node_name": node["name"], "node_rank": rank}
        return SSHCommand(self.make_new_node_executor(rank, node, self.executor), node_address(node), **options)


class TorchrunAllNodes(ForeachNode):
    """torchrun on every machine of the benchmark, all of which meet at the main one."""

    def __init__(self, executor: Any, *words: Any, **options: Any) -> None:
        super().__init__(self.make_base_executor(TorchrunAllGPU, executor, *words, **options))

    @staticmethod
    def make_base_executor(launcher: Any, executor: Any, *words: Any, **options: Any) -> Any:
        """`launcher` around the executor, with the words that say where the machines meet."""
        config = executor.pack.config
        nodes = machines_of(config)
        host, port = node_address(nodes[0]), option("torchrun.port", int, PORT)
        meeting = [
            f"--nnodes={len(nodes)}",
            f"--rdzv-backend={option('torchrun.backend', str, 'static')}",
            f"--rdzv-endpoint={host}:{port}",
            f"--master-addr={host}",
            f"--master-port={port}",
            f"--local-ranks-filter={option('torchrun.local_ranks_filder', str, '0')}",
        ]
        if config["plan"]["method"] == "per_gpu":
            meeting = []
        return launcher(executor, *meeting, *words, **options)

    def make_new_node_executor(self, rank: int, node: dict[str, Any], base: Any) -> Any:
        made = super().make_new_node_executor(rank, node, base)
        own = [f"--node-rank={rank}", f"--local-addr={node['ip']}", f"--rdzv-conf=rank={rank}"]
        made.wrapper_argv = [*made.wrapper_argv, *own]
        return made


class AccelerateLaunchCommand(PlanNode):
    """accelerate over all devices of all machines."""

    def __init__(self, pack: Any, rank: int = 0, *words: Any, **options: Any) -> None:
        super().__init__(pack, **options)
        self.rank, self.accelerate_argv = rank, words

    def _argv(self, **kwargs: Any) -> list[Any]:
        config = self.pack.config
        nodes = machines_of(config)
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
            f"--main_process_port={option('torchrun.port', int, PORT)}",
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


def machines_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The machines of the benchmark, the main one first."""
    return select_nodes(config["system"]["nodes"], max_node_count(config))


def max_node_count(config: dict[str, Any]) -> int:
    return int(config.get("num_machines") or 1)


def node_address(node: dict[str, Any]) -> str:
    return str(node.get("ip") or node.get("hostname"))

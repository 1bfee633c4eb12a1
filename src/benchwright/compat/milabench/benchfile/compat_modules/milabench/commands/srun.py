"""Commands that Slurm spreads over machines. On one machine they are the command itself."""

from __future__ import annotations

from typing import Any

from ..utils import NotKnown
from .launchers import ForeachNode, TorchrunAllGPU, TorchrunAllNodes


class ForeachSrun(ForeachNode):
    def main_executor(self) -> Any:
        return self.executor

    def single_node(self) -> Any:
        return self.main_executor()

    def make_new_node_executor(self, rank: int, node: dict[str, Any], base: Any) -> Any:
        raise NotKnown("milabench.commands.srun on several machines, which needs Slurm")


class TorchrunSrun(ForeachSrun):
    def __init__(self, executor: Any, *words: Any, **options: Any) -> None:
        super().__init__(TorchrunAllNodes.make_base_executor(TorchrunAllGPU, executor, *words, **options))

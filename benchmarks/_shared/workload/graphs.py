"""CUDA graphs: all kernels of a pass launched at once, so that the GPU is measured and not the Python that feeds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

WARM_UPS = 3  # before the capture: libraries choose their kernels and take their memory


class Captured:
    """`compute`, of tensors that stay where they are; `replay` launches its kernels again and returns its result, which the
    next replay overwrites."""

    def __init__(self, compute: Callable[[], Tensor], pool: Any = None) -> None:
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(WARM_UPS):
                compute()
        torch.cuda.current_stream().wait_stream(beside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool):
            self._result = compute()

    def replay(self) -> Tensor:
        self._graph.replay()
        return self._result

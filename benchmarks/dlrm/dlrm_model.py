"""DLRM (Naumov et al. 2019), laid out as facebookresearch/dlrm: embedding bags, a bottom and a top MLP, dot products between."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from sharded_tables import Placement, exchange_indices, exchange_vectors
from torch import Tensor, nn

DENSE = 13  # features of a sample that are numbers; each table stands for one that is a category


@dataclass(frozen=True)
class Config:
    rows: tuple[int, ...]  # of each table
    bottom: tuple[int, ...]  # layers; the last is the width of the embeddings
    top: tuple[int, ...]

    @property
    def width(self) -> int:
        return self.bottom[-1]

    @property
    def interactions(self) -> int:
        """Pairs of what the samples have: each embedding and the dense features."""
        vectors = len(self.rows) + 1
        return vectors * (vectors - 1) // 2

    @property
    def bottom_layers(self) -> tuple[int, ...]:
        return (DENSE, *self.bottom)

    @property
    def top_layers(self) -> tuple[int, ...]:
        return (self.width + self.interactions, *self.top)

    @property
    def parameters(self) -> int:
        layers = [*pairwise(self.bottom_layers), *pairwise(self.top_layers)]
        return sum(self.rows) * self.width + sum(before * after + after for before, after in layers)

    @property
    def training_flops(self) -> int:
        """Forward and backward for one sample. Looking up costs no arithmetic, and the dense features need no gradient."""
        bottom = [2 * before * after for before, after in pairwise(self.bottom_layers)]
        top = sum(2 * before * after for before, after in pairwise(self.top_layers))
        dots = 2 * (len(self.rows) + 1) ** 2 * self.width  # all pairs, in both orders
        return 3 * (sum(bottom) + dots + top) - bottom[0]

    def limited(self, rows: int | None) -> Config:
        """With tables of `rows` at most: the public code's --max-ind-range."""
        return self if rows is None else replace(self, rows=tuple(min(rows, count) for count in self.rows))


CONFIGS = {
    "nano": Config((1000, 500, 200, 50, 20, 10, 4, 3), (32, 16, 8), (32, 16, 1)),  # ours, for trying out
    # Criteo's Display Advertising Challenge: bench/dlrm_s_criteo_kaggle.sh
    "kaggle": Config(
        (
            *(1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194),
            *(27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572),
        ),
        (512, 256, 64, 16),
        (512, 256, 1),
    ),
    # Criteo Terabyte, 10 million rows at most: bench/dlrm_s_criteo_terabyte.sh
    "terabyte": Config(
        (
            *(9980333, 36084, 17217, 7378, 20134, 3, 7112, 1442, 61, 9758201, 1333352, 313829, 10),
            *(2208, 11156, 122, 4, 970, 14, 9994222, 7267859, 9946608, 415421, 12420, 101, 36),
        ),
        (512, 256, 64),
        (512, 512, 256, 1),
    ),
    # Criteo Terabyte, 40 million rows at most: MLPerf Training 0.7 to 2.1
    "mlperf": Config(
        (
            *(39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10),
            *(2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36),
        ),
        (512, 256, 128),
        (1024, 1024, 512, 256, 1),
    ),
}
PUBLIC_PARAMETERS = {"kaggle": 540_677_217, "terabyte": 3_144_845_185, "mlperf": 24_036_595_969}


class Tables(nn.Module):
    """The embedding bags that are here, each as a module of its own or all in one."""

    def __init__(self, rows: list[int], numbers: list[int], width: int, fused: bool, seed: int) -> None:
        """`numbers` tells which of all tables these are: a table begins alike wherever it is."""
        super().__init__()
        sizes = [sum(rows)] if fused else rows
        self.bags = nn.ModuleList(_empty_bag(count, width) for count in sizes)
        first = torch.tensor([0, *rows]).cumsum(0)[:-1] if fused else torch.zeros(len(rows), dtype=torch.long)
        self.first: Tensor
        self.register_buffer("first", first[:, None, None], persistent=False)
        weights = self.bags[0].weight.split(rows) if fused else [bag.weight for bag in self.bags]
        for weight, count, number in zip(weights, rows, numbers, strict=True):
            _fill(weight.detach(), math.sqrt(1 / count), seed + number)

    def forward(self, indices: Tensor) -> Tensor:
        """(tables, samples, lookups) to (tables, samples, width)"""
        if len(self.bags) == len(indices):
            return torch.stack([bag(indices[number]) for number, bag in enumerate(self.bags)])
        tables, samples, _ = indices.shape
        return self.bags[0]((indices + self.first).flatten(0, 1)).view(tables, samples, -1)


class DLRM(nn.Module):
    """With `placement`, only this process' tables are here, and what they hold is sent to where it is needed."""

    def __init__(self, config: Config, fused: bool = False, placement: Placement | None = None, seed: int = 0) -> None:
        super().__init__()
        self.placement = placement
        here = list(range(len(config.rows))) if placement is None else placement.here
        self.tables = Tables([config.rows[number] for number in here], here, config.width, fused, seed)
        self.bottom = _mlp(config.bottom_layers, nn.ReLU())
        self.top = _mlp(config.top_layers, nn.Identity())
        vectors = len(config.rows) + 1
        below = torch.tril_indices(vectors, vectors, offset=-1)
        self.pairs: Tensor
        self.sent_order: Tensor
        self.got_order: Tensor
        self.register_buffer("pairs", below[0] * vectors + below[1], persistent=False)
        order = torch.tensor([] if placement is None else placement.order, dtype=torch.long)
        self.register_buffer("sent_order", order, persistent=False)
        self.register_buffer("got_order", order.argsort(), persistent=False)

    def forward(self, dense: Tensor, indices: Tensor) -> Tensor:
        """The logits of (samples, 13) numbers and (tables, samples, lookups) rows of the tables."""
        if self.placement is None:
            vectors = self.tables(indices)
        else:
            found = self.tables(exchange_indices(indices.index_select(0, self.sent_order), self.placement))
            vectors = exchange_vectors(found, self.placement).index_select(0, self.got_order)
        x = self.bottom(dense)
        both = torch.cat([x[:, None], vectors.transpose(0, 1).to(x.dtype)], dim=1)
        dots = torch.bmm(both, both.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat([x, dots.to(x.dtype)], dim=1)).squeeze(1)


def _mlp(layers: tuple[int, ...], last: nn.Module) -> nn.Sequential:
    made: list[nn.Module] = []
    for before, after in pairwise(layers):
        layer = nn.Linear(before, after)
        nn.init.normal_(layer.weight, std=math.sqrt(2 / (before + after)))
        nn.init.normal_(layer.bias, std=math.sqrt(1 / after))
        made += [layer, nn.ReLU()]
    return nn.Sequential(*made[:-1], last)


def _empty_bag(rows: int, width: int) -> nn.EmbeddingBag:
    """Its gradient holds the rows that were looked up, no others."""
    return nn.EmbeddingBag(rows, width, mode="sum", sparse=True, _weight=torch.empty(rows, width))


def _fill(weight: Tensor, bound: float, seed: int) -> None:
    if not weight.is_meta:
        weight.uniform_(-bound, bound, generator=torch.Generator(weight.device).manual_seed(seed))

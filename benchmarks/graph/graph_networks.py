"""Message passing in plain torch: GIN and GCN as OGB trains them on molecules, PNA as in PyTorch Geometric's example.

Messages are gathered by `index_select` along the edges and added up by `index_add`; minima and maxima by `scatter_reduce`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from molecules import ATOM_FEATURES, BOND_FEATURES, Graphs
from torch import Tensor, nn

DROPOUT = 0.5
LEAST_VARIANCE = 1e-5  # of messages; less is none


class Embeddings(nn.Module):
    """The sum of one embedding for each column of categories."""

    def __init__(self, values: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(count, width) for count in values)
        for table in self.tables:
            nn.init.xavier_uniform_(table.weight)

    def forward(self, columns: Tensor) -> Tensor:
        return sum(table(columns[:, number]) for number, table in enumerate(self.tables))


class GIN(nn.Module):
    """Graph isomorphism: a node and the sum of its neighbours, through two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )
        self.epsilon = nn.Parameter(torch.zeros(1))
        self.bonds = Embeddings(BOND_FEATURES, width)

    def forward(self, x: Tensor, graphs: Graphs) -> Tensor:
        messages = F.relu(x.index_select(0, graphs.source) + self.bonds(graphs.bonds))
        return self.mlp((1 + self.epsilon) * x + _added(messages, graphs.target, len(x)))


class GCN(nn.Module):
    """Graph convolution: the neighbours, each weighed by how many they and the node have."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.root = nn.Embedding(1, width)
        self.bonds = Embeddings(BOND_FEATURES, width)

    def forward(self, x: Tensor, graphs: Graphs) -> Tensor:
        x = self.linear(x)
        degree = _degrees(graphs, len(x)) + 1
        weight = degree.rsqrt()
        messages = F.relu(x.index_select(0, graphs.source) + self.bonds(graphs.bonds))
        messages = messages * (weight[graphs.source] * weight[graphs.target])[:, None]
        return _added(messages, graphs.target, len(x)) + F.relu(x + self.root.weight) / degree[:, None]


class MoleculeNetwork(nn.Module):
    """`layers` of GIN or GCN, the mean over each molecule's atoms, and a linear layer: OGB's baselines."""

    def __init__(self, kind: type[GIN] | type[GCN], layers: int, width: int) -> None:
        super().__init__()
        self.atoms = Embeddings(ATOM_FEATURES, width)
        self.convolutions = nn.ModuleList(kind(width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))
        self.out = nn.Linear(width, 1)

    def forward(self, graphs: Graphs) -> Tensor:
        x = self.atoms(graphs.atoms)
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            x = norm(convolution(x, graphs))
            x = F.dropout(x if number == len(self.norms) - 1 else F.relu(x), DROPOUT, self.training)
        count = len(graphs.label)
        size = _added(x.new_ones(len(x)), graphs.graph, count)
        return self.out(_added(x, graphs.graph, count) / size[:, None]).squeeze(1)


class PNA(nn.Module):
    """Principal neighbourhood aggregation: mean, minimum, maximum and deviation of the messages, each in three scales.

    The towers, which PyTorch Geometric computes one after the other, are computed together.
    """

    TOWERS, AGGREGATORS, SCALERS = 5, 4, 3

    def __init__(self, width: int, edge_width: int, mean_log_degree: float) -> None:
        super().__init__()
        self.width, self.mean_log_degree = width, mean_log_degree
        self.edges = nn.Linear(edge_width, width)
        self.before = nn.Linear(3 * width, self.TOWERS * width)
        inner, out = (self.AGGREGATORS * self.SCALERS + 1) * width, width // self.TOWERS
        self.after = nn.Parameter(torch.empty(self.TOWERS, inner, out).uniform_(-1, 1) / math.sqrt(inner))
        self.after_bias = nn.Parameter(torch.zeros(self.TOWERS, 1, out))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, bonds: Tensor, graphs: Graphs) -> Tensor:
        nodes = len(x)
        ends = x.index_select(0, graphs.target), x.index_select(0, graphs.source)
        messages = self.before(torch.cat([*ends, self.edges(bonds)], dim=1))
        degree = _degrees(graphs, nodes).clamp(min=1)[:, None]
        mean = _added(messages, graphs.target, nodes) / degree
        square = _added(messages * messages, graphs.target, nodes) / degree
        index = graphs.target[:, None].expand_as(messages)
        low, high = (
            messages.new_zeros(nodes, messages.shape[1]).scatter_reduce(0, index, messages, how, include_self=False)
            for how in ("amin", "amax")
        )
        deviation = (square - mean * mean).clamp(min=LEAST_VARIANCE).sqrt()
        deviation = deviation.masked_fill(deviation <= math.sqrt(LEAST_VARIANCE), 0.0)
        found = torch.stack([mean, low, high, deviation], dim=1)
        found = found.view(nodes, self.AGGREGATORS, self.TOWERS, self.width).transpose(1, 2).flatten(2)
        scale = torch.log(degree + 1)[:, :, None] / self.mean_log_degree
        own = x[:, None].expand(-1, self.TOWERS, -1)
        inner = torch.cat([own, found, found * scale, found / scale], dim=2).transpose(0, 1)
        towers = torch.bmm(inner, self.after.to(inner.dtype)) + self.after_bias
        return self.out(towers.transpose(0, 1).flatten(1))


class PNANetwork(nn.Module):
    """PyTorch Geometric's `examples/pna.py`, for ZINC: one category for an atom and one for a bond."""

    ATOMS, BONDS = 21, 4

    def __init__(self, layers: int, width: int, edge_width: int, mean_log_degree: float) -> None:
        super().__init__()
        self.atoms, self.bonds = nn.Embedding(self.ATOMS, width), nn.Embedding(self.BONDS, edge_width)
        self.convolutions = nn.ModuleList(PNA(width, edge_width, mean_log_degree) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))
        self.out = nn.Sequential(nn.Linear(width, 50), nn.ReLU(), nn.Linear(50, 25), nn.ReLU(), nn.Linear(25, 1))

    def forward(self, graphs: Graphs) -> Tensor:
        x, bonds = self.atoms(graphs.atoms[:, 0]), self.bonds(graphs.bonds[:, 0])
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = F.relu(norm(convolution(x, bonds, graphs)))
        return self.out(_added(x, graphs.graph, len(graphs.label))).squeeze(1)


def mean_log_degree(graphs: Graphs) -> float:
    """What PNA's scales are relative to."""
    degrees = _degrees(graphs, len(graphs.atoms))
    return float(torch.log(degrees + 1).mean())


def _added(values: Tensor, to: Tensor, count: int) -> Tensor:
    return values.new_zeros(count, *values.shape[1:]).index_add(0, to, values)


def _degrees(graphs: Graphs, nodes: int) -> Tensor:
    ones = torch.ones(len(graphs.target), device=graphs.target.device)
    return _added(ones, graphs.target, nodes)

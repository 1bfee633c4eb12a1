#!/usr/bin/env python3
"""Trains a graph network (GIN, GCN or PNA) on made-up molecules. README.md tells the rest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
import torch.nn.functional as F
from graph_networks import GCN, GIN, PNA, MoleculeNetwork, PNANetwork, mean_log_degree
from molecules import ATOM_FEATURES, BOND_FEATURES, Graphs, batches, counts

from workload.devices import rank
from workload.options import parse, parser
from workload.training import Training, run

SIZES = {
    "tiny": {"model": "gin", "batch_size": 32, "layers": 2, "width": 60, "learning_rate": 3e-3},
    "small": {"model": "gin", "batch_size": 32, "learning_rate": 1e-3},
    "full": {"model": "gin", "batch_size": 2048, "learning_rate": 1e-3},
}
PUBLIC = {"gin": (5, 300), "gcn": (5, 300), "pna": (4, 75)}  # layers and width
PUBLIC_PARAMETERS = {"gin": 1_885_206, "gcn": 527_701, "pna": 677_376}
EDGE_WIDTH = 50
BATCHES = 8  # fixed ones, gone through again and again


def options(argv: list[str] | None = None) -> Any:
    found = parser("Trains a graph network on made-up molecules.", SIZES)
    found.add_argument("--model", choices=list(PUBLIC), help="which network  [by size]")
    found.add_argument("--layers", type=int, help="[by size; else as published]")
    found.add_argument("--width", type=int, help="of a node; for pna a multiple of 5  [by size; else as published]")
    found.add_argument("--learning-rate", type=float, help="[by size]")
    given = parse(found, SIZES, argv)
    layers, width = PUBLIC[given.model]
    given.layers, given.width = given.layers or layers, given.width or width
    if given.model == "pna" and given.width % PNA.TOWERS:
        found.error(f"--width of pna is a multiple of {PNA.TOWERS}")
    return given


def parameters(model: str, layers: int, width: int) -> int:
    """By formula."""
    w = width
    if model == "pna":
        inner = (PNA.AGGREGATORS * PNA.SCALERS + 1) * w
        towers = PNA.TOWERS * (3 * w * w + w) + inner * w + w
        layer = EDGE_WIDTH * w + w + towers + w * w + w + 2 * w
        head = w * 50 + 50 + 50 * 25 + 25 + 25 + 1
        return PNANetwork.ATOMS * w + PNANetwork.BONDS * EDGE_WIDTH + layers * layer + head
    bonds = sum(BOND_FEATURES) * w
    gin = 2 * w * w + 2 * w + 2 * (2 * w) + 2 * w * w + w + 1
    gcn = w * w + w + w
    layer = (gin if model == "gin" else gcn) + bonds + 2 * w
    return sum(ATOM_FEATURES) * w + layers * layer + w + 1


def forward_flops(model: str, layers: int, width: int, nodes: int, edges: int, graphs: int) -> int:
    """Of the matrix products of a batch: gathering and adding up cost memory traffic, no products."""
    w = width
    if model == "pna":
        inner = (PNA.AGGREGATORS * PNA.SCALERS + 1) * w
        on_edges = 2 * EDGE_WIDTH * w + 2 * 3 * w * PNA.TOWERS * w
        on_nodes = 2 * inner * w + 2 * w * w
        return layers * (edges * on_edges + nodes * on_nodes) + graphs * 2 * (w * 50 + 50 * 25 + 25)
    on_nodes = 2 * 2 * w * 2 * w if model == "gin" else 2 * w * w
    return layers * nodes * on_nodes + graphs * 2 * w


def network(model: str, layers: int, width: int, log_degree: float = 1.0) -> torch.nn.Module:
    if model == "pna":
        return PNANetwork(layers, width, EDGE_WIDTH, log_degree)
    return MoleculeNetwork(GIN if model == "gin" else GCN, layers, width)


def build(given: Any, device: torch.device) -> Training:
    made = [graphs.to(device) for graphs in batches(given.batch_size, BATCHES, given.seed + rank())]
    sizes = given.model, given.layers, given.width
    published = PUBLIC_PARAMETERS[given.model] if sizes[1:] == PUBLIC[given.model] else None

    def loss(model: torch.nn.Module, graphs: Graphs) -> torch.Tensor:
        """Whether the molecule does something, as in molhiv; for PNA, how much of it, as in ZINC."""
        found = model(graphs).float()
        if given.model == "pna":
            return F.l1_loss(found, graphs.label)
        return F.binary_cross_entropy_with_logits(found, (graphs.label > 0).float())

    return Training(
        model=network(*sizes, mean_log_degree(made[0])),
        batches=made,
        loss=loss,
        items=given.batch_size,
        unit="graphs",
        # The categories are embedded, and embeddings learn: every product has both gradients.
        flops_per_item=3 * forward_flops(*sizes, *counts(given.batch_size), given.batch_size) / given.batch_size,
        parameters=published or parameters(*sizes),
        optimizer=lambda found: torch.optim.Adam(found, lr=given.learning_rate),
    )


if __name__ == "__main__":
    sys.exit(run(options(), build))

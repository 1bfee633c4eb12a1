#!/usr/bin/env python3
"""Trains DLRM, the recommender, on made-up clicks. README.md tells the rest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
import torch.nn.functional as F
from dlrm_model import CONFIGS, DENSE, DLRM, PUBLIC_PARAMETERS, Config
from sharded_tables import place
from torch import Tensor

from workload.devices import rank, world_size
from workload.options import parse, parser
from workload.training import Training, run

SIZES = {
    "tiny": {"model": "nano", "batch_size": 256, "learning_rate": 0.3},
    "small": {"model": "kaggle", "max_rows": 100_000, "batch_size": 512, "learning_rate": 0.3},
    "full": {"model": "terabyte", "batch_size": 32768, "learning_rate": 0.1},
}
BATCHES = 8  # fixed ones, gone through again and again

Batch = tuple[Tensor, Tensor, Tensor]  # numbers, rows to look up, clicked


def options(argv: list[str] | None = None) -> Any:
    found = parser("Trains DLRM on made-up clicks.", SIZES)
    found.add_argument("--model", choices=list(CONFIGS), help="which tables and layers  [by size]")
    found.add_argument("--max-rows", type=int, help="no table has more  [by size; else as published]")
    found.add_argument("--lookups", type=int, default=1, help="rows looked up in each table for a sample  [1]")
    found.add_argument("--fused", action="store_true", help="all tables in one, looked up at once")
    found.add_argument("--learning-rate", type=float, help="[by size]")
    return parse(found, SIZES, argv)


def clicks(config: Config, samples: int, lookups: int, count: int, seed: int, device: torch.device) -> list[Batch]:
    """`count` batches. Few rows of a table are looked up often and most hardly ever; whether there was a click follows
    from the numbers."""
    weights = torch.randn(DENSE, generator=torch.Generator().manual_seed(0)).to(device)  # the same in every process
    generator = torch.Generator(device).manual_seed(seed)
    rows = torch.tensor(config.rows, device=device, dtype=torch.float64)[:, None, None]
    made = []
    for _ in range(count):
        dense = torch.randn(samples, DENSE, generator=generator, device=device)
        chance = torch.rand(len(config.rows), samples, lookups, generator=generator, device=device, dtype=torch.float64)
        indices = ((rows + 1) ** chance).long() - 1  # the row at place n as often as 1/n
        made.append((dense, indices, (dense @ weights > 0).float()))
    return made


def loss(model: torch.nn.Module, batch: Batch) -> Tensor:
    dense, indices, clicked = batch
    return F.binary_cross_entropy_with_logits(model(dense, indices).float(), clicked)


def build(given: Any, device: torch.device) -> Training:
    config = CONFIGS[given.model].limited(given.max_rows)
    several = world_size() > 1
    with device:
        placement = place(config.rows, world_size(), rank()) if several else None
        model = DLRM(config, given.fused, placement, given.seed)
    if several:  # what differs between processes is not averaged over them
        apart = [f"tables.{name}" for name, _ in [*model.tables.named_parameters(), *model.tables.named_buffers()]]
        torch.nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, apart)
    published = None if given.max_rows else PUBLIC_PARAMETERS.get(given.model)
    return Training(
        model=model,
        batches=clicks(config, given.batch_size, given.lookups, BATCHES, given.seed + rank(), device),
        loss=loss,
        items=given.batch_size,
        unit="samples",
        flops_per_item=config.training_flops,
        parameters=None if several else published or config.parameters,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=given.learning_rate),
    )


if __name__ == "__main__":
    sys.exit(run(options(), build))

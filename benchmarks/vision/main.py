#!/usr/bin/env python3
"""Training image classification: ResNet-50, ConvNeXt and ViT, with an input pipeline and without."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
from torch.nn import functional

from workload.devices import rank, world_size
from workload.image_files import Files, ImageFiles, endless_loader
from workload.image_patterns import labelled_batches
from workload.models.image_models import NAMES, image_model
from workload.options import data_folder, parse, parser
from workload.prepared import needed
from workload.training import Training, run

NAME = "vision"
KEPT_BATCHES = 4  # of the synthetic loader
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"precision": "fp32", "channels_last": False, "num_workers": 1},
    "small": {"precision": "fp32", "channels_last": False, "num_workers": 2},
    "full": {"precision": "bf16", "channels_last": True, "num_workers": 8},
}
BATCH_SIZES = {
    "resnet50": {"tiny": 16, "small": 16, "full": 256},
    "convnext_tiny": {"tiny": 16, "small": 8, "full": 256},
    "convnext_large": {"tiny": 16, "small": 8, "full": 64},
    "vit_b_16": {"tiny": 16, "small": 16, "full": 256},
}
LEARNING_RATES = {"tiny": 2e-3, "small": 3e-4, "full": 1e-4}  # of AdamW
FILES = {
    "tiny": Files(count=128, width=96, height=72),
    "small": Files(count=512, width=256, height=192),
    "full": Files(count=2048, width=500, height=375),
}


def arguments(argv: list[str] | None = None) -> Any:
    found = parser(str(__doc__), SIZES)
    found.add_argument("--model", choices=NAMES, default="resnet50")
    found.add_argument(
        "--loader", choices=("synthetic", "pipeline"), default="synthetic", help="where images come from"
    )
    found.add_argument("--num-workers", type=int, help="processes that decode images, for --loader pipeline  [by size]")
    found.add_argument(
        "--channels-last",
        action=argparse.BooleanOptionalAction,
        help="channels are next to each other in memory  [by size]",
    )
    found.add_argument("--learning-rate", type=float, help="[by size; ResNet: 0.01]")
    options = parse(found, SIZES, argv)
    if options.batch_size is None:
        options.batch_size = BATCH_SIZES[options.model][options.size]
    return options


def build(options: Any, device: torch.device) -> Training:
    chosen = image_model(options.model, options.size)
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    batches: Iterable[Any]
    if options.loader == "pipeline":
        images = ImageFiles(needed(data_folder(options, NAME)), chosen.side, seed=options.seed)
        pin = device.type == "cuda"
        batches = endless_loader(images, options.batch_size, options.num_workers, pin, rank(), world_size())
    else:
        made = labelled_batches(KEPT_BATCHES, options.batch_size, chosen.side, options.seed + rank(), device)
        batches = [(images.contiguous(memory_format=layout), labels) for images, labels in made]

    def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
        images, labels = batch
        images = images.to(device, non_blocking=True).contiguous(memory_format=layout)
        return functional.cross_entropy(model(images), labels.to(device, non_blocking=True))

    return Training(
        model=chosen.build().to(memory_format=layout),
        batches=batches,
        loss=loss,
        items=options.batch_size,
        unit="images",
        flops_per_item=chosen.cost.training_flops,
        parameters=chosen.parameters,
        optimizer=optimizer(options),
    )


def optimizer(options: Any) -> Callable[[Any], torch.optim.Optimizer]:
    """The kind that the model was published with."""
    rate = options.learning_rate
    if options.model == "resnet50":
        return lambda parameters: torch.optim.SGD(parameters, lr=rate or 0.01, momentum=0.9, weight_decay=1e-4)
    return lambda parameters: torch.optim.AdamW(parameters, lr=rate or LEARNING_RATES[options.size], weight_decay=0.05)


if __name__ == "__main__":
    sys.exit(run(arguments(), build))

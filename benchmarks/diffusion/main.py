#!/usr/bin/env python3
"""Training a diffusion model: the U-Net of DDPM learns which noise was added to images."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
from torch.nn import functional

from workload.devices import rank
from workload.image_patterns import labelled_batches
from workload.models.unet import AT_256, Shape, UNet, cost
from workload.options import parse, parser
from workload.training import Training, run

KEPT_BATCHES = 4
TIMES = 1000
PUBLIC_PARAMETERS = {"ddpm_cifar10": 35_746_307, "ddpm_256": 113_673_219}
SHAPES = {
    "ddpm_cifar10": {
        "tiny": Shape(side=16, width=32, factors=(1, 2), blocks=1, attention=(8,), groups=8),
        "small": Shape(width=64),
        "full": Shape(),
    },
    "ddpm_256": {
        "tiny": Shape(side=32, width=16, factors=(1, 1, 2), blocks=1, attention=(8,), groups=8, dropout=0.0),
        "small": Shape(side=64, width=64, factors=(1, 1, 2, 4), dropout=0.0),
        "full": AT_256,
    },
}
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"precision": "fp32", "channels_last": False, "learning_rate": 2e-3},
    "small": {"precision": "fp32", "channels_last": False, "learning_rate": 1e-3},
    "full": {"precision": "bf16", "channels_last": True, "learning_rate": 2e-4},
}
BATCH_SIZES = {
    "ddpm_cifar10": {"tiny": 8, "small": 8, "full": 128},
    "ddpm_256": {"tiny": 8, "small": 4, "full": 32},
}


def arguments(argv: list[str] | None = None) -> Any:
    found = parser(str(__doc__), SIZES)
    found.add_argument("--model", choices=tuple(SHAPES), default="ddpm_cifar10")
    found.add_argument(
        "--channels-last",
        action=argparse.BooleanOptionalAction,
        help="channels are next to each other in memory  [by size]",
    )
    found.add_argument("--learning-rate", type=float, help="[by size]")
    options = parse(found, SIZES, argv)
    if options.batch_size is None:
        options.batch_size = BATCH_SIZES[options.model][options.size]
    return options


def build(options: Any, device: torch.device) -> Training:
    shape = SHAPES[options.model][options.size]
    claimed = cost(shape)
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    made = labelled_batches(KEPT_BATCHES, options.batch_size, shape.side, options.seed + rank(), device)
    batches = [images.clamp_(-1, 1).contiguous(memory_format=layout) for images, _ in made]
    kept = torch.linspace(1e-4, 0.02, TIMES, dtype=torch.float64).neg().add(1).cumprod(0)  # of the image, at each time
    image_part, noise_part = (part.sqrt().float().to(device)[:, None, None, None] for part in (kept, 1 - kept))

    def loss(model: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        times = torch.randint(TIMES, (len(images),), device=device)
        noise = torch.randn_like(images)
        predicted = model(image_part[times] * images + noise_part[times] * noise, times)
        return functional.mse_loss(predicted.float(), noise)

    return Training(
        model=UNet(shape).to(memory_format=layout),
        batches=batches,
        loss=loss,
        items=options.batch_size,
        unit="images",
        flops_per_item=claimed.training_flops,
        parameters=PUBLIC_PARAMETERS[options.model] if options.size == "full" else claimed.parameters,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=options.learning_rate),
    )


if __name__ == "__main__":
    sys.exit(run(arguments(), build))

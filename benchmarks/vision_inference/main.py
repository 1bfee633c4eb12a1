#!/usr/bin/env python3
"""Inference of image classification: ResNet-50, ConvNeXt and ViT answer one batch after the other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch

from workload.devices import dtype_of
from workload.image_patterns import labelled_batches
from workload.inference import Inference, run
from workload.models.image_models import NAMES, image_model
from workload.options import parse, parser

KEPT_BATCHES = 4
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"precision": "fp32", "channels_last": False, "batch_size": 16},
    "small": {"precision": "fp32", "channels_last": False, "batch_size": 16},
    "full": {"precision": "bf16", "channels_last": True, "batch_size": 128},
}


def arguments(argv: list[str] | None = None) -> Any:
    found = parser(str(__doc__), SIZES)
    found.add_argument("--model", choices=NAMES, default="resnet50")
    found.add_argument(
        "--channels-last",
        action=argparse.BooleanOptionalAction,
        help="channels are next to each other in memory  [by size]",
    )
    options = parse(found, SIZES, argv)
    if options.check:
        options.precision = "fp32"  # the same answer in two ways: without rounding in between
    return options


def build(options: Any, device: torch.device) -> Inference:
    chosen = image_model(options.model, options.size)
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    dtype = dtype_of(options.precision)
    model = chosen.build().to(dtype=dtype, memory_format=layout)
    made = labelled_batches(KEPT_BATCHES, options.batch_size, chosen.side, options.seed, device)
    batches = [images.to(dtype).contiguous(memory_format=layout) for images, _ in made]

    def answer(asked: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, enabled=False):  # the weights are of the wanted type already
            return asked(images)

    def right(answer: torch.Tensor) -> bool:
        """A number for each class, and for every image the answer it gets alone."""
        last = len(answer) - 1
        alone = model(batches[0][last:])
        close = torch.allclose(alone[0], answer[last], rtol=1e-2, atol=1e-3)
        return answer.shape == (options.batch_size, chosen.classes) and bool(answer.isfinite().all()) and close

    return Inference(
        model=model,
        batches=batches,
        answer=answer,
        items=options.batch_size,
        unit="images",
        flops_per_item=chosen.cost.flops,
        parameters=chosen.parameters,
        right=right,
    )


if __name__ == "__main__":
    sys.exit(run(arguments(), build))

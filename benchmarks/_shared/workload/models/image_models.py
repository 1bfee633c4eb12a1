"""The models of the image benchmarks at the sizes they come in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from workload.costs import Cost
from workload.models import convnext, resnet, vit

PUBLIC_PARAMETERS = {
    "resnet50": 25_557_032,
    "convnext_tiny": 28_589_128,
    "convnext_large": 197_767_336,
    "vit_b_16": 86_567_656,
}
NAMES = tuple(PUBLIC_PARAMETERS)
SIDES = {"tiny": 64, "small": 128, "full": 224}
CLASSES = {"tiny": 10, "small": 100, "full": 1000}

_SHAPES = {
    "resnet50": {
        "tiny": resnet.Shape((1, 1, 1, 1), width=16),
        "small": resnet.Shape(),
        "full": resnet.Shape(),
    },
    "convnext_tiny": {
        "tiny": convnext.Shape((1, 1, 2, 1), (16, 32, 64, 128)),
        "small": convnext.Shape(),
        "full": convnext.Shape(),
    },
    "convnext_large": {
        "tiny": convnext.Shape((1, 1, 3, 1), (24, 48, 96, 192)),
        "small": replace(convnext.LARGE, widths=(96, 192, 384, 768)),  # ConvNeXt-Small
        "full": convnext.LARGE,
    },
    "vit_b_16": {
        "tiny": vit.Shape(width=64, depth=3, heads=4),
        "small": vit.Shape(width=384, heads=6),  # ViT-S/16
        "full": vit.Shape(),
    },
}


@dataclass(frozen=True)
class ImageModel:
    """`parameters`: of the public model at `full`, else by formula; `cost` is always by formula."""

    build: Callable[[], nn.Module]
    cost: Cost
    parameters: int
    side: int
    classes: int


def image_model(name: str, size: str) -> ImageModel:
    side, classes = SIDES[size], CLASSES[size]
    shape = replace(_SHAPES[name][size], classes=classes)
    if isinstance(shape, resnet.Shape):
        build, cost = (lambda: resnet.ResNet(shape)), resnet.cost(shape, side)
    elif isinstance(shape, convnext.Shape):
        build, cost = (lambda: convnext.ConvNeXt(shape)), convnext.cost(shape, side)
    else:
        build, cost = (lambda: vit.ViT(shape, side)), vit.cost(shape, side)
    parameters = PUBLIC_PARAMETERS[name] if size == "full" else cost.parameters
    return ImageModel(build, cost, parameters, side, classes)

"""ConvNeXt, as in torchvision.

Liu et al., A ConvNet for the 2020s, https://arxiv.org/abs/2201.03545.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from workload.costs import Cost, conv, linear, norm

EPSILON = 1e-6


@dataclass(frozen=True)
class Shape:
    """The defaults are ConvNeXt-Tiny: 28,589,128 parameters."""

    depths: tuple[int, ...] = (3, 3, 9, 3)
    widths: tuple[int, ...] = (96, 192, 384, 768)
    drop_path: float = 0.1  # how often the last block is left out for an image; earlier ones less
    classes: int = 1000


LARGE = Shape((3, 3, 27, 3), (192, 384, 768, 1536), drop_path=0.5)  # 197,767,336 parameters


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of images."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, width: int, drop: float) -> None:
        super().__init__()
        self.mix = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, EPSILON)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.mix(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(functional.gelu(self.widen(y)))
        y = y.permute(0, 3, 1, 2)
        if self.training and self.drop:
            kept = torch.empty(len(x), 1, 1, 1, dtype=y.dtype, device=y.device).bernoulli_(1 - self.drop)
            y = y * kept.div_(1 - self.drop)
        return x + y


class ConvNeXt(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, shape.widths[0], 4, 4), LayerNorm2d(shape.widths[0], EPSILON)]
        channels, number, last = shape.widths[0], 0, max(1, sum(shape.depths) - 1)
        for depth, width in zip(shape.depths, shape.widths, strict=True):
            if width != channels:
                layers += [LayerNorm2d(channels, EPSILON), nn.Conv2d(channels, width, 2, 2)]
            for _ in range(depth):
                layers.append(Block(width, shape.drop_path * number / last))
                number += 1
            channels = width
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(channels, EPSILON)
        self.head = nn.Linear(channels, shape.classes)
        self._initialise()

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(x).mean((2, 3))))


def cost(shape: Shape, side: int) -> Cost:
    """Of an image of `side` × `side`."""
    side //= 4
    channels = shape.widths[0]
    total = conv(3, channels, 4, side).first + norm(channels)
    for depth, width in zip(shape.depths, shape.widths, strict=True):
        if width != channels:
            side //= 2
            total += norm(channels) + conv(channels, width, 2, side)
        block = conv(width, width, 7, side, groups=width) + norm(width) + Cost(parameters=width)
        total += depth * (block + linear(width, 4 * width, side * side) + linear(4 * width, width, side * side))
        channels = width
    return total + norm(channels) + linear(channels, shape.classes)

"""ResNet with bottleneck blocks, as in torchvision ("v1.5": the stride is in the 3×3 convolution).

He et al., Deep Residual Learning for Image Recognition, https://arxiv.org/abs/1512.03385.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from workload.costs import Cost, conv, linear, norm

EXPANSION = 4


@dataclass(frozen=True)
class Shape:
    """The defaults are ResNet-50: 25,557,032 parameters."""

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    classes: int = 1000

    @property
    def stages(self) -> list[tuple[int, int]]:
        """Blocks and width of each."""
        return [(count, self.width * 2**i) for i, count in enumerate(self.blocks)]


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * EXPANSION
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        y = functional.relu(self.norm2(self.conv2(y)), inplace=True)
        return functional.relu(self.norm3(self.conv3(y)) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, shape.width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(shape.width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks: list[nn.Module] = []
        channels = shape.width
        for stage, (count, width) in enumerate(shape.stages):
            for i in range(count):
                blocks.append(Bottleneck(channels, width, stride=2 if stage and not i else 1))
                channels = width * EXPANSION
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, shape.classes)
        self._initialise()

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


def cost(shape: Shape, side: int) -> Cost:
    """Of an image of `side` × `side`."""
    side = _halved(side)
    total = conv(3, shape.width, 7, side, bias=False).first + norm(shape.width)
    side = _halved(side)  # by the pool
    channels = shape.width
    for stage, (count, width) in enumerate(shape.stages):
        out = width * EXPANSION
        for i in range(count):
            before, side = side, _halved(side) if stage and not i else side
            total += conv(channels, width, 1, before, bias=False) + norm(width)
            total += conv(width, width, 3, side, bias=False) + norm(width)
            total += conv(width, out, 1, side, bias=False) + norm(out)
            if not i:
                total += conv(channels, out, 1, side, bias=False) + norm(out)
            channels = out
    return total + linear(channels, shape.classes)


def _halved(side: int) -> int:
    """By a window with stride 2 and its padding."""
    return (side + 1) // 2

"""The U-Net of denoising diffusion: residual blocks that know the time, and attention at chosen resolutions.

Ho et al., Denoising Diffusion Probabilistic Models, https://arxiv.org/abs/2006.11239.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from workload.costs import Cost, attention, conv, linear, norm


@dataclass(frozen=True)
class Shape:
    """The defaults are the model for CIFAR-10: 35,746,307 parameters."""

    side: int = 32
    width: int = 128
    factors: tuple[int, ...] = (1, 2, 2, 2)  # of the width, at each resolution
    blocks: int = 2
    attention: tuple[int, ...] = (16,)  # the resolutions with attention
    groups: int = 32
    dropout: float = 0.1


AT_256 = Shape(side=256, factors=(1, 1, 2, 2, 4, 4), dropout=0.0)  # for LSUN and CelebA-HQ: 113,673,219 parameters


class Residual(nn.Module):
    def __init__(self, shape: Shape, channels: int, out: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(shape.groups, channels, 1e-6)
        self.conv1 = nn.Conv2d(channels, out, 3, padding=1)
        self.time = nn.Linear(4 * shape.width, out)
        self.norm2 = nn.GroupNorm(shape.groups, out, 1e-6)
        self.dropout = nn.Dropout(shape.dropout)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.shortcut: nn.Module = nn.Identity() if channels == out else nn.Conv2d(channels, out, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        y = self.conv2(self.dropout(functional.silu(self.norm2(y))))
        return self.shortcut(x) + y


class Attention(nn.Module):
    """One head over all places of an image."""

    def __init__(self, shape: Shape, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(shape.groups, channels, 1e-6)
        self.project = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        places = self.norm(x).flatten(2).transpose(1, 2)
        query, key, value = self.project(places).unsqueeze(1).chunk(3, dim=-1)
        y = self.out(functional.scaled_dot_product_attention(query, key, value).squeeze(1))
        return x + y.transpose(1, 2).reshape(batch, channels, height, width)


class Smaller(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, 2)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        return self.conv(functional.pad(x, (0, 1, 0, 1)))


class Larger(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        return self.conv(functional.interpolate(x, scale_factor=2.0, mode="nearest"))


class Together(nn.ModuleList):
    """One after the other, each with the time."""

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        for module in self:
            x = module(x, time)
        return x


class UNet(nn.Module):
    """Called with noisy images and the time of each; says what the noise was."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.width = shape.width
        self.time = nn.Sequential(
            nn.Linear(shape.width, 4 * shape.width), nn.SiLU(), nn.Linear(4 * shape.width, 4 * shape.width), nn.SiLU()
        )
        self.first = nn.Conv2d(3, shape.width, 3, padding=1)
        widths = [shape.width * factor for factor in shape.factors]
        side, channels, skips = shape.side, shape.width, [shape.width]
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for level, width in enumerate(widths):
            for _ in range(shape.blocks):
                self.down.append(_stage(shape, channels, width, side))
                channels = width
                skips.append(channels)
            if level < len(widths) - 1:
                self.down.append(Together([Smaller(channels)]))
                skips.append(channels)
                side //= 2
        self.middle = Together(
            [Residual(shape, channels, channels), Attention(shape, channels), Residual(shape, channels, channels)]
        )
        for level, width in reversed(list(enumerate(widths))):
            for block in range(shape.blocks + 1):
                stage = _stage(shape, channels + skips.pop(), width, side)
                channels = width
                if block == shape.blocks and level:
                    stage.append(Larger(channels))
                    side *= 2
                self.up.append(stage)
        self.last = nn.Sequential(
            nn.GroupNorm(shape.groups, channels, 1e-6), nn.SiLU(), nn.Conv2d(channels, 3, 3, padding=1)
        )
        nn.init.zeros_(self.last[-1].weight)

    def forward(self, x: Tensor, times: Tensor) -> Tensor:
        time = self.time(waves(times, self.width))
        x = self.first(x)
        kept = [x]
        for stage in self.down:
            x = stage(x, time)
            kept.append(x)
        x = self.middle(x, time)
        for stage in self.up:
            x = stage(torch.cat([x, kept.pop()], dim=1), time)
        return self.last(x)


def _stage(shape: Shape, channels: int, width: int, side: int) -> Together:
    parts: list[nn.Module] = [Residual(shape, channels, width)]
    if side in shape.attention:
        parts.append(Attention(shape, width))
    return Together(parts)


def waves(times: Tensor, width: int) -> Tensor:
    """Sines and cosines of the times, as transformers encode positions."""
    half = width // 2
    frequencies = torch.exp(torch.arange(half, device=times.device) * (-math.log(10_000) / (half - 1)))
    angles = times.float()[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def cost(shape: Shape) -> Cost:
    """Of one image at one time. What a fused attention computes again in its backward pass is not counted."""
    embedded = 4 * shape.width

    def stage(channels: int, out: int, side: int, attends: bool) -> Cost:
        found = (
            norm(channels) + conv(channels, out, 3, side) + linear(embedded, out) + norm(out) + conv(out, out, 3, side)
        )
        if channels != out:
            found += conv(channels, out, 1, side)
        if attends:
            places = side * side
            found += (
                norm(out) + linear(out, 3 * out, places) + attention(places, places, out) + linear(out, out, places)
            )
        return found

    side, channels = shape.side, shape.width
    total = linear(shape.width, embedded).first + linear(embedded, embedded)
    total += conv(3, channels, 3, side).first
    skips = [channels]
    for level, factor in enumerate(shape.factors):
        if level:
            side //= 2
            total += conv(channels, channels, 3, side)
            skips.append(channels)
        for _ in range(shape.blocks):
            total += stage(channels, shape.width * factor, side, side in shape.attention)
            channels = shape.width * factor
            skips.append(channels)
    total += stage(channels, channels, side, True) + stage(channels, channels, side, False)
    for level, factor in reversed(list(enumerate(shape.factors))):
        for _ in range(shape.blocks + 1):
            total += stage(channels + skips.pop(), shape.width * factor, side, side in shape.attention)
            channels = shape.width * factor
        if level:
            side *= 2
            total += conv(channels, channels, 3, side)
    return total + norm(channels) + conv(channels, 3, 3, side)

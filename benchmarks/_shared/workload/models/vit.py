"""Vision Transformer, as in torchvision.

Dosovitskiy et al., An Image is Worth 16x16 Words, https://arxiv.org/abs/2010.11929.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from workload.costs import Cost, attention, conv, linear, norm

EPSILON = 1e-6


@dataclass(frozen=True)
class Shape:
    """The defaults are ViT-B/16: 86,567,656 parameters with images of 224 × 224."""

    width: int = 768
    depth: int = 12
    heads: int = 12
    patch: int = 16
    classes: int = 1000


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, EPSILON)
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, EPSILON)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self._attend(self.norm1(x))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x))))

    def _attend(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.project(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(query, key, value)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


class ViT(nn.Module):
    def __init__(self, shape: Shape, side: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, shape.width, shape.patch, shape.patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, shape.width))
        self.positions = nn.Parameter(torch.empty(1, (side // shape.patch) ** 2 + 1, shape.width).normal_(std=0.02))
        self.blocks = nn.Sequential(*(Block(shape.width, shape.heads) for _ in range(shape.depth)))
        self.norm = nn.LayerNorm(shape.width, EPSILON)
        self.head = nn.Linear(shape.width, shape.classes)
        self._initialise()

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def cost(shape: Shape, side: int) -> Cost:
    """Of an image of `side` × `side`. What a fused attention computes again in its backward pass is not counted."""
    across, width = side // shape.patch, shape.width
    tokens = across**2 + 1
    total = conv(3, width, shape.patch, across).first + Cost(parameters=width + tokens * width)
    block = norm(width) + linear(width, 3 * width, tokens) + attention(tokens, tokens, width)
    block += linear(width, width, tokens) + norm(width)
    block += linear(width, 4 * width, tokens) + linear(4 * width, width, tokens)
    return total + shape.depth * block + norm(width) + linear(width, shape.classes)

"""LoRA: beside each chosen frozen matrix a product of two thin ones, which alone learn; and what that takes."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn
from torch.nn import functional

from workload.models.language.arithmetic import vocabulary
from workload.models.language.shapes import Shape

TARGETS = ("query", "key", "value", "output", "gate", "up", "down")


class Adapted(nn.Module):
    """`base(x) + up(down(x)) · scale`. `up` begins as 0, so the model begins as it was."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base
        self.scale = alpha / rank
        place = {"device": base.weight.device, "dtype": torch.float32}
        self.down = nn.Parameter(torch.empty(rank, base.in_features, **place))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **place))
        nn.init.kaiming_uniform_(self.down, a=5**0.5)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.base(x) + functional.linear(functional.linear(x, self.down), self.up) * self.scale
        return result


def adapt(model: nn.Module, targets: Collection[str], rank: int, alpha: float) -> None:
    """Freezes the model, and puts an adapter beside each matrix that is called as one of `targets`."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for part in list(model.modules()):
        for name, child in list(part.named_children()):
            if name in targets and isinstance(child, nn.Linear):
                setattr(part, name, Adapted(child, rank, alpha))


def sides(shape: Shape) -> dict[str, tuple[int, int]]:
    """Inputs and outputs of each matrix of a layer."""
    queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    return {
        "query": (shape.width, queries),
        "key": (shape.width, keys),
        "value": (shape.width, keys),
        "output": (queries, shape.width),
        "gate": (shape.width, shape.hidden),
        "up": (shape.width, shape.hidden),
        "down": (shape.hidden, shape.width),
    }


def trainable_parameters(shape: Shape, targets: Collection[str], rank: int) -> int:
    of = sides(shape)
    return shape.layers * sum(rank * sum(of[name]) for name in targets)


class _Tally:
    """Adds up the arithmetic of one token, forward and backward, and knows where gradients have to go.

    A frozen matrix has no gradient of its own; and before the first adapter nothing needs one for what comes in either.
    """

    def __init__(self, shape: Shape, targets: Collection[str], rank: int) -> None:
        self.total = 0.0
        self._sides, self._targets, self._rank = sides(shape), targets, rank

    def matrix(self, name: str, needed: bool) -> bool:
        """Through one matrix, whose input needs a gradient or not. Returns whether its output does."""
        inputs, outputs = self._sides[name]
        adapted = name in self._targets
        self.total += 2 * inputs * outputs * (2 if needed else 1)
        if adapted:
            thin_in, thin_out = 2 * self._rank * inputs, 2 * self._rank * outputs
            self.total += thin_in + thin_out  # forward
            self.total += 2 * thin_out + thin_in  # the gradients of `up`, of what lies between, and of `down`
            self.total += thin_in if needed else 0
        return needed or adapted

    def attention(self, size: float, query: bool, key: bool, value: bool) -> bool:
        """`size`: of one of the two products: scores, and values weighted by them."""
        scores = query or key
        self.total += 2 * size
        self.total += size * (int(value) + int(scores) + int(query) + int(key))
        return scores or value


def training_flops(shape: Shape, length: int, targets: Collection[str], rank: int) -> float:
    """Per token, forward and backward, with all weights frozen but the adapters'."""
    tally = _Tally(shape, targets, rank)
    needed = False  # nothing before the first adapter learns
    for _ in range(shape.layers):
        attended = tally.attention(
            2 * length * shape.heads * shape.head_width,
            *(tally.matrix(name, needed) for name in ("query", "key", "value")),
        )
        needed = tally.matrix("output", attended) or needed
        gated = [tally.matrix(name, needed) for name in ("gate", "up")]
        needed = tally.matrix("down", any(gated)) or needed
    return tally.total + vocabulary(shape) * (2 if needed else 1)

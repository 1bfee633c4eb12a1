"""Where torch's own counter of arithmetic is wrong or silent: the formulas that `counted_flops` uses instead.

- Convolutions in groups: the gradient of the weights is counted as if every output channel saw every input channel, too
  much by the number of groups (for the depthwise convolutions of ConvNeXt by the number of channels).
- Fused attention on the CPU is not counted at all. Its backward computes the scores anew, as the kernels for GPUs do; that
  is counted as torch counts it for those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.utils.flop_counter import sdpa_flop_count

Shape = Sequence[int]


def formulas() -> dict[Any, Callable[..., int]]:
    """For FlopCounterMode(custom_mapping=…). The functions are called with shapes in the place of tensors."""
    aten = torch.ops.aten
    found: dict[Any, Callable[..., int]] = {aten.convolution_backward: convolution_backward}
    for name, formula in (("", attention), ("_backward", attention_backward)):
        operator = getattr(aten, f"_scaled_dot_product_flash_attention_for_cpu{name}", None)
        if operator is not None:
            found[operator] = formula
    return found


def convolution_backward(
    gradient: Shape,
    inputs: Shape,
    weights: Shape,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    wanted: Sequence[bool],
    **_: Any,
) -> int:
    """The gradients of the input and of the weights each cost as much as the forward pass."""
    places = (inputs if transposed else gradient)[2:]
    forward = 2 * inputs[0] * prod(weights) * prod(places)  # `weights` holds the channels of one group only
    return forward * (int(wanted[0]) + int(wanted[1]))


def attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def attention_backward(gradient: Shape, query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """Five products where the forward pass has two."""
    return int(sdpa_flop_count(query, key, value)) * 5 // 2

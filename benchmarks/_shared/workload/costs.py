"""Parameters and arithmetic of layers by formula: what a benchmark claims of its model, independent of the module.

Two operations for each multiply-add of matrix products, convolutions and attention; the rest is left out, as everywhere
where FLOPs of networks are told. One item: an image, say.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Costs add up: `conv(…) + norm(…)`; `3 * block` is three blocks, each with parameters of its own."""

    parameters: int = 0
    flops: int = 0  # forward, of one item
    no_input_gradient: int = 0  # the part of `flops` in layers at the very beginning: nothing before them learns

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.parameters + other.parameters,
            self.flops + other.flops,
            self.no_input_gradient + other.no_input_gradient,
        )

    def __rmul__(self, times: int) -> Cost:
        return Cost(times * self.parameters, times * self.flops, times * self.no_input_gradient)

    @property
    def first(self) -> Cost:
        """The same at the beginning of the network, where no gradient goes back to the input."""
        return Cost(self.parameters, self.flops, self.flops)

    @property
    def training_flops(self) -> int:
        """Forward, the gradients of the weights, and those of the inputs. Nothing that is computed twice counts twice."""
        return 3 * self.flops - self.no_input_gradient


def conv(channels: int, out: int, kernel: int, side: int, bias: bool = True, groups: int = 1) -> Cost:
    """A square convolution whose output is `side` × `side`."""
    weights = channels // groups * out * kernel * kernel
    return Cost(weights + (out if bias else 0), 2 * weights * side * side)


def linear(features: int, out: int, rows: int = 1, bias: bool = True) -> Cost:
    """Applied to `rows` vectors of an item."""
    return Cost(features * out + (out if bias else 0), 2 * features * out * rows)


def norm(features: int) -> Cost:
    """Batch, layer or group norm with scale and shift."""
    return Cost(parameters=2 * features)


def attention(queries: int, keys: int, width: int) -> Cost:
    """Every query looks at every key; `width`: of all heads together. The projections are apart."""
    return Cost(flops=4 * queries * keys * width)

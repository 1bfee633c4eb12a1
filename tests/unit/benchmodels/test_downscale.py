"""Models of scale tiny: at most 30 M parameters, or refused with their size."""

from __future__ import annotations

from typing import Any

import pytest

from benchmodels.zoo.base import NotInZoo, ZooModel, ZooRequest
from benchmodels.zoo.downscale import (
    MOST_PARAMETERS,
    TooLarge,
    first_that_runs,
    narrower_layers,
    refuse_large,
    refuse_large_plan,
)

TINY = ZooRequest("any")


def convolutions(torch: Any) -> Any:
    """Widths are written in it, and no arguments: as in VGG. One convolution has a group for each channel."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 64, 3),
        nn.BatchNorm2d(64),
        nn.Conv2d(in_channels=64, out_channels=64, kernel_size=3, groups=64),
        nn.AdaptiveAvgPool2d(7),
        nn.Flatten(),
        nn.Linear(64 * 49, 4096),
        nn.LayerNorm(4096),
        nn.Linear(4096, 4096),
        nn.Linear(4096, out_features=1000),
    ).eval()


@pytest.mark.parametrize("divisor", [2, 4, 8])
def test_layers_are_narrower_and_fit_together(torch: Any, divisor: int) -> None:
    def parameters(module: Any) -> int:
        return sum(each.numel() for each in module.parameters())

    before = torch.nn.Linear.__init__
    whole = convolutions(torch)
    with narrower_layers(divisor):
        made = convolutions(torch)
    assert torch.nn.Linear.__init__ is before
    assert [made[0].in_channels, made[0].out_channels, made[2].groups] == [3, 64 // divisor, 64 // divisor]
    assert made(torch.rand(1, 3, 32, 32)).shape == (1, 1000)
    assert parameters(made) < parameters(whole) / divisor


def test_the_first_that_is_small_enough_is_taken(torch: Any) -> None:
    def made(width: int) -> ZooModel:
        refuse_large_plan(TINY, lambda: torch.nn.Linear(width, width))
        module = torch.nn.Linear(width, width)
        refuse_large(TINY, module)
        return ZooModel(module, (torch.ones(1, width),))

    found = first_that_runs([lambda: made(10_000_000), lambda: made(100)])  # the first would take 400 TB
    assert found.module.in_features == 100
    with pytest.raises(NotInZoo, match="its smallest variant has 36 M parameters, and tiny models have at most 30 M"):
        first_that_runs([lambda: made(8000), lambda: made(6000)])


def test_only_scale_tiny_has_a_limit(torch: Any) -> None:
    with torch.device("meta"):
        large = torch.nn.Linear(1, MOST_PARAMETERS)
    with pytest.raises(TooLarge):
        refuse_large(TINY, large)
    refuse_large(TINY._replace(scale="small"), large)

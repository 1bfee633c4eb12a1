"""A zoo of three models: `example:mlp`, `example:conv`, and one that cannot be measured."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from benchmodels.zoo.base import NEEDS_PACKAGE, NotInZoo, ZooEntry, ZooModel, ZooRequest

WIDTHS = {"tiny": 8, "small": 64, "full": 512}


class ExampleZoo:
    """Small networks of torch."""

    name = "example"
    packages = ("torch",)

    def version(self) -> str:
        return "1.0"

    def entries(self) -> Iterable[ZooEntry]:
        yield ZooEntry(self.name, "mlp", "text", {"author": "us"})
        yield ZooEntry(self.name, "conv", "vision", {"author": "us", "family": "conv"})
        yield ZooEntry(self.name, "vision/conv", "vision", {"author": "others"}, same_as="example:conv")
        yield ZooEntry(self.name, "needy", "other", {"author": "others"})

    def build(self, request: ZooRequest) -> ZooModel:
        torch: Any = import_module("torch")  # here: listing a zoo imports nothing heavy
        width, batch = WIDTHS[request.scale], request.size("batch_size", 1)
        if request.name == "needy":
            raise NotInZoo("the package 'unheard-of' is not installed", NEEDS_PACKAGE)
        if request.name == "mlp":
            layers: tuple[Any, ...] = torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 3)
            inputs = torch.rand(batch, width)
        else:
            layers = torch.nn.Conv2d(3, width, 3), torch.nn.Flatten(1)
            inputs = torch.rand(batch, 3, request.size("height", 16), request.size("width", 16))
        return ZooModel(torch.nn.Sequential(*layers).eval(), (inputs,), {}, batch, "batch_size")

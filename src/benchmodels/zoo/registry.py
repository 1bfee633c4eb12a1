"""Zoos by name: the built-in ones, and zoos of other packages, from the entry-point group `benchmodels.zoos`."""

from __future__ import annotations

import difflib
import importlib
from importlib import metadata
from typing import Any, Dict, List

from benchmodels.zoo.base import Zoo

GROUP = "benchmodels.zoos"
# Classes, which take no arguments. Not entry points: benchmodels also runs from a plain copy of its folder.
BUILT_IN = {
    "transformers": "benchmodels.zoo.transformers.zoo:TransformersZoo",
    "timm": "benchmodels.zoo.timm:TimmZoo",
    "torchvision": "benchmodels.zoo.torchvision:TorchvisionZoo",
    "pyg": "benchmodels.zoo.pyg:PygZoo",
    "diffusers": "benchmodels.zoo.diffusers:DiffusersZoo",
    "torch-hub": "benchmodels.zoo.torch_hub:TorchHubZoo",
    "hf": "benchmodels.zoo.huggingface:HuggingFaceZoo",
}


class UnknownZoo(ValueError):
    """No zoo has that name; the text offers the nearest."""


def known_zoos() -> List[str]:
    """The names of all zoos, the built-in ones first. Imports none of them."""
    return list(_zoo_places())


def zoo_named(name: str) -> Zoo:
    """The zoo of that name."""
    places = BUILT_IN if name in BUILT_IN else _zoo_places()
    if name not in places:
        near = difflib.get_close_matches(name, list(places), 1)
        raise UnknownZoo(
            f"unknown zoo '{name}'; " + (f"did you mean '{near[0]}'?" if near else f"known: {', '.join(places)}")
        )
    module, _, attribute = places[name].partition(":")
    made: Zoo = getattr(importlib.import_module(module), attribute)()
    return made


def _zoo_places() -> Dict[str, str]:
    """Name → `module:class`. A built-in one cannot be replaced."""
    points: Any = metadata.entry_points()
    found = points.select(group=GROUP) if hasattr(points, "select") else points.get(GROUP, ())  # Python 3.9 has none
    added = {point.name: point.value for point in sorted(found, key=lambda point: str(point.name))}
    return {**BUILT_IN, **{name: place for name, place in added.items() if name not in BUILT_IN}}

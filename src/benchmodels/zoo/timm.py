"""timm's image models."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence

from benchmodels.zoo.base import FULL, TINY, ZooEntry, ZooModel, ZooRequest, fill_zeros, version_of
from benchmodels.zoo.downscale import (
    few,
    first_that_runs,
    image_side,
    narrow,
    narrower_layers,
    refuse_large,
    refuse_large_plan,
    replaced,
)
from benchmodels.zoo.sources import decorated, package_folder
from benchmodels.zoo.vision_import import declare_operators

DEPTHS = ("depth", "depths", "layers", "num_layers", "num_blocks", "stage_depths")
CONFIGS = ("model_cfg", "cfg")
WIDTHS = re.compile(
    r"(^|_)(dims?|channels|chs|width|widths|planes|features|hidden_size|hidden_features|num_features|out_channels)$"
)
HEADS = re.compile(r"(^|_)heads$")
DIVISORS = (2, 4, 8)  # of widths, where fewer layers do not make it small enough
NARROWEST = 16
BUILDER = "build_model_with_cfg"


class TimmZoo:
    """Every architecture that timm registers, without its variants of weights."""

    name = "timm"
    packages = ("timm",)

    def version(self) -> str:
        return version_of("timm")

    def entries(self) -> Iterable[ZooEntry]:
        for path, _, name in decorated(package_folder("timm") / "models", "@register_model"):
            yield ZooEntry(self.name, name, "vision", {"author": "timm", "family": path.stem})

    def build(self, request: ZooRequest) -> ZooModel:
        declare_operators()
        timm: Any = import_module("timm")

        if request.scale == FULL:
            return _made(timm, request, {})
        usual = timm.models.get_pretrained_cfg(request.name)
        side = _side(request, usual)
        sized: Dict[str, Any] = {"img_size": side}

        def shallow(more: Dict[str, Any], divisor: int) -> ZooModel:
            entry = sys.modules[timm.models.model_entrypoint(request.name).__module__]
            with replaced(entry, BUILDER, lambda build: _with_few_layers(build, divisor)):
                return _made(timm, request, more)

        def narrowed(more: Dict[str, Any], divisor: int) -> ZooModel:
            with narrower_layers(divisor):
                return shallow(more, 1)

        candidates: List[Callable[[], ZooModel]] = []
        if request.scale == TINY:
            candidates = [partial(shallow, more, divisor) for divisor in (1, *DIVISORS) for more in (sized, {})]
            candidates += [partial(narrowed, more, divisor) for divisor in DIVISORS for more in (sized, {})]
        candidates += [
            lambda: _made(timm, request, sized),
            lambda: _made(timm, request, {}),
            lambda: _made(timm, request, {}, usual_size=True),
        ]
        return first_that_runs(candidates)


def _side(request: ZooRequest, usual: Any) -> int:
    least = max((usual.min_input_size or (0, 0))[1:]) if usual else 0
    return image_side(request, usual.input_size[1] if usual else 224, least)


def _made(timm: Any, request: ZooRequest, more: Dict[str, Any], usual_size: bool = False) -> ZooModel:
    torch: Any = import_module("torch")
    asked = {name: request.size(name, 1) for name in ("height", "width") if name in request.parameters}
    if asked and "img_size" in more:
        more = {**more, "img_size": (asked.get("height", more["img_size"]), asked.get("width", more["img_size"]))}

    def make() -> Any:
        return timm.create_model(request.name, pretrained=False, **more).eval()

    refuse_large_plan(request, make)
    module = make()
    refuse_large(request, module)
    fill_zeros(torch, module)
    config = module.pretrained_cfg
    channels, height, width = config["input_size"]
    if not usual_size and request.scale != FULL:
        height = width = _side(request, timm.models.get_pretrained_cfg(request.name))
    batch = request.size("batch_size", 1)
    height, width = asked.get("height", height), asked.get("width", width)
    images = torch.rand(batch, request.size("num_channels", channels), height, width)
    return ZooModel(module, (images,), {}, batch, "the zoo's batch_size")


def _with_few_layers(build: Any, divisor: int = 1) -> Any:
    """timm's builder of models, with fewer layers in what it is given, and widths divided."""

    def shallow_build(*args: Any, **kwargs: Any) -> Any:
        kwargs.update({name: _narrower(name, value, divisor) for name, value in _widths(args, kwargs).items()})
        for name, value in list(kwargs.items()):
            if name in DEPTHS:
                kwargs[name] = few(value, 2 if name == "depth" else 1)
            elif name in CONFIGS and dataclasses.is_dataclass(value):
                kwargs[name] = _shallow_config(value, divisor)
        if isinstance(kwargs.get("block_args"), list):
            kwargs["block_args"] = [stage[:1] for stage in kwargs["block_args"]]
        return build(*args, **kwargs)

    return shallow_build


def _widths(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Dict[str, Any]:
    """Width arguments given to the builder, over the defaults of the class it builds."""
    given = {name: value for name, value in kwargs.items() if WIDTHS.search(name) or HEADS.search(name)}
    kind = next((each for each in args if isinstance(each, type)), None)
    usual = inspect.signature(kind).parameters.values() if kind is not None and given else ()
    return {**{p.name: p.default for p in usual if WIDTHS.search(p.name) or HEADS.search(p.name)}, **given}


def _narrower(name: str, value: Any, divisor: int) -> Any:
    return narrow(value, divisor, 1 if HEADS.search(name) else NARROWEST)


def _shallow_config(config: Any, divisor: int) -> Any:
    """With one block of each sort where blocks are counted."""
    changes: Dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in (*DEPTHS, "d"):
            changes[field.name] = few(value)
        elif WIDTHS.search(field.name) or HEADS.search(field.name):
            changes[field.name] = _narrower(field.name, value, divisor)
        elif field.name == "blocks" and isinstance(value, (list, tuple)):
            changes[field.name] = type(value)(
                _shallow_config(each, divisor) if dataclasses.is_dataclass(each) else each for each in value
            )
    return dataclasses.replace(config, **changes) if changes else config

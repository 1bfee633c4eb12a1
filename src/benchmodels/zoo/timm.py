"""timm's image models."""

from __future__ import annotations

import dataclasses
import sys
from importlib import import_module
from typing import Any, Dict, Iterable

from benchmodels.zoo.base import FULL, TINY, ZooEntry, ZooModel, ZooRequest, fill_zeros, version_of
from benchmodels.zoo.shrinking import few, first_that_runs, image_side, replaced
from benchmodels.zoo.sources import decorated, package_folder
from benchmodels.zoo.vision_import import declare_operators

DEPTHS = ("depth", "depths", "layers", "num_layers", "num_blocks", "stage_depths")
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

        def shallow(more: Dict[str, Any]) -> ZooModel:
            entry = sys.modules[timm.models.model_entrypoint(request.name).__module__]
            with replaced(entry, BUILDER, _with_few_layers):
                return _made(timm, request, more)

        candidates = [lambda: shallow(sized), lambda: shallow({})] if request.scale == TINY else []
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
    module = timm.create_model(request.name, pretrained=False, **more).eval()
    fill_zeros(torch, module)
    config = module.pretrained_cfg
    channels, height, width = config["input_size"]
    if not usual_size and request.scale != FULL:
        height = width = _side(request, timm.models.get_pretrained_cfg(request.name))
    batch = request.size("batch_size", 1)
    height, width = asked.get("height", height), asked.get("width", width)
    images = torch.rand(batch, request.size("num_channels", channels), height, width)
    return ZooModel(module, (images,), {}, batch, "the zoo's batch_size")


def _with_few_layers(build: Any) -> Any:
    """timm's builder of models, with fewer layers in what it is given."""

    def shallow_build(*args: Any, **kwargs: Any) -> Any:
        for name in DEPTHS:
            if name in kwargs:
                kwargs[name] = few(kwargs[name], 2 if name == "depth" else 1)
        if isinstance(kwargs.get("block_args"), list):
            kwargs["block_args"] = [stage[:1] for stage in kwargs["block_args"]]
        if dataclasses.is_dataclass(kwargs.get("model_cfg")):
            kwargs["model_cfg"] = _shallow_config(kwargs["model_cfg"])
        return build(*args, **kwargs)

    return shallow_build


def _shallow_config(config: Any) -> Any:
    """With one block of each sort where blocks are counted."""
    changes: Dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in (*DEPTHS, "d"):
            changes[field.name] = few(value)
        elif field.name == "blocks" and isinstance(value, (list, tuple)):
            changes[field.name] = type(value)(
                _shallow_config(each) if dataclasses.is_dataclass(each) else each for each in value
            )
    return dataclasses.replace(config, **changes) if changes else config

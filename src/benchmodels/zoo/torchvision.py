"""torchvision's models: classification, segmentation, detection, video and optical flow."""

from __future__ import annotations

import contextlib
import copy
from functools import partial
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Tuple

from benchmodels.zoo.base import (
    FULL,
    NEEDS_DEVICE,
    NEEDS_PACKAGE,
    TINY,
    NotInZoo,
    ZooEntry,
    ZooModel,
    ZooRequest,
    fill_zeros,
    version_of,
)
from benchmodels.zoo.downscale import (
    few,
    first_that_runs,
    image_side,
    narrower_layers,
    refuse_large,
    refuse_large_plan,
    replaced,
)
from benchmodels.zoo.sources import decorated, package_folder
from benchmodels.zoo.vision_import import torchvision, why_no_operators

TASKS_OF_FOLDERS = {"detection": "detection", "segmentation": "segmentation", "video": "video"}
FRAMES = 16
DIVISORS = (2, 4, 8)  # of widths, where fewer layers do not make a model small enough
USUAL_SIDE = {"detection": 800, "segmentation": 520, "video": 112, "vision": 224}
LEAST_SIDE = {
    "inception_v3": 75,
    "googlenet": 64,
    "alexnet": 64,
    "raft_large": 128,
    "raft_small": 128,
    "s3d": 224,
    "maxvit_t": 224,
}
NO_KERNELS = "torch's int8 kernels (FBGEMM) do not know this processor"
# Module → class and argument that says how deep a model is, and what makes it shallow.
SHALLOW: Mapping[str, Tuple[str, Any, Callable[[Any], Any]]] = {
    "resnet": ("ResNet", 1, few),
    "vision_transformer": ("VisionTransformer", "num_layers", lambda layers: min(layers, 2)),
    "densenet": ("DenseNet", 1, lambda blocks: few(tuple(blocks), 2)),
    "swin_transformer": ("SwinTransformer", "depths", lambda depths: few(depths, 2)),
    "convnext": ("ConvNeXt", 0, lambda blocks: _one_each(blocks)),
    "efficientnet": ("EfficientNet", 0, lambda blocks: _one_each(blocks)),
    "regnet": ("RegNet", 0, lambda blocks: _with(blocks, depths=few(list(blocks.depths)))),
    "maxvit": ("MaxVit", "block_layers", few),
    "video.resnet": ("VideoResNet", 2, few),
    "video.swin_transformer": ("SwinTransformer3d", "depths", lambda depths: few(depths, 2)),
}


class TorchvisionZoo:
    """Everything that its registry lists."""

    name = "torchvision"
    packages = ("torchvision",)

    def version(self) -> str:
        return version_of("torchvision")

    def entries(self) -> Iterable[ZooEntry]:
        folder = package_folder("torchvision") / "models"
        for path, decorator, function in decorated(folder, r"@register_model\("):
            given = decorator.partition('"')[2].partition('"')[0]
            part = path.parent.name
            labels = {"author": "torchvision", "family": path.stem}
            if part == "quantization":
                labels["precision"] = "int8"
            yield ZooEntry(self.name, given or function, TASKS_OF_FOLDERS.get(part, "vision"), labels)

    def build(self, request: ZooRequest) -> ZooModel:
        torchvision()
        builder = import_module("torchvision.models").get_model_builder(request.name)
        part = builder.__module__.partition("torchvision.models.")[2]
        task = TASKS_OF_FOLDERS.get(part.partition(".")[0], "vision")
        missing = why_no_operators() if task == "detection" else None
        if missing is not None:
            raise NotInZoo(missing, NEEDS_PACKAGE)
        if request.scale == FULL:
            return _made(request, builder, part, task)

        def deep() -> ZooModel:
            return _made(request, builder, part, task)

        if request.scale != TINY:
            return first_that_runs([deep])

        def shallow() -> ZooModel:
            with _shallow(part):
                return deep()

        def narrowed(divisor: int) -> ZooModel:
            with narrower_layers(divisor):
                return shallow()

        return first_that_runs([shallow, *(partial(narrowed, divisor) for divisor in DIVISORS), deep])


def _made(request: ZooRequest, builder: Any, part: str, task: str) -> ZooModel:
    torch: Any = import_module("torch")
    batch = request.size("batch_size", 1)
    usual = _usual_side(builder, USUAL_SIDE[task])
    side = image_side(request, usual, LEAST_SIDE.get(request.name, 0))
    height, width = request.size("height", side), request.size("width", side)
    more: Dict[str, Any] = {}
    if task in ("detection", "segmentation"):
        more["weights_backbone"] = None
    if part.startswith("quantization."):
        more["quantize"] = True
    if part == "vision_transformer":
        more["image_size"] = height
    if part == "maxvit":
        more["input_size"] = (height, width)
    if part == "video.mvit":
        more["spatial_size"] = (height, width)
    if task == "detection" and not request.name.startswith("ssd"):  # those have a fixed size
        more.update(min_size=min(height, width), max_size=max(height, width))

    def make() -> Any:
        return builder(weights=None, **more).eval()

    try:
        if not part.startswith("quantization."):
            refuse_large_plan(request, make)
        module = make()
    except RuntimeError as error:
        if "unknown archite" in str(error):  # torch writes it in two ways
            raise NotInZoo(NO_KERNELS, NEEDS_DEVICE) from error
        raise
    refuse_large(request, module)
    fill_zeros(torch, module)
    frames = request.size("num_frames", FRAMES)
    items = (batch, "the zoo's batch_size")
    if task == "detection":
        return ZooModel(module, ([torch.rand(3, height, width) for _ in range(batch)],), {}, *items)
    if task == "video":
        return ZooModel(module, (torch.rand(batch, 3, frames, height, width),), {}, *items)
    images = torch.rand(batch, 3, height, width)
    if part.startswith("optical_flow."):
        return ZooModel(module, (images, torch.rand_like(images)), {}, *items)
    return ZooModel(module, (images,), {}, *items)


def _usual_side(builder: Any, otherwise: int) -> int:
    """Of the images that its weights were trained with."""
    try:
        weights = import_module("torchvision.models").get_model_weights(builder).DEFAULT
    except (ValueError, AttributeError):  # it has no weights
        return otherwise
    size = getattr(weights.transforms, "keywords", {}).get("crop_size", otherwise)
    return int(min(size) if isinstance(size, (list, tuple)) else size)


def _with(settings: Any, **changes: Any) -> Any:
    """A copy of settings of blocks, with these."""
    changed = copy.copy(settings)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _one_each(blocks: Iterable[Any]) -> Any:
    return [_with(block, num_layers=1) for block in blocks]


@contextlib.contextmanager
def _shallow(part: str) -> Iterator[None]:
    """Models of this module have few layers meanwhile."""
    if part not in SHALLOW:
        yield
        return
    name, where, change = SHALLOW[part]
    kind = getattr(import_module(f"torchvision.models.{part}"), name)

    def wrapped(init: Any) -> Any:
        def shallow_init(self: Any, *args: Any, **kwargs: Any) -> None:
            words = list(args)
            if where in kwargs:
                kwargs[where] = change(kwargs[where])
            elif isinstance(where, int) and where < len(words):
                words[where] = change(words[where])
            init(self, *words, **kwargs)

        return shallow_init

    with replaced(kind, "__init__", wrapped):
        yield

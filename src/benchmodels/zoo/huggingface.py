"""Models of the Hugging Face hub: the configuration of `hf:org/name`, with random weights.

Only config.json is needed, and it is read from the hub's cache on this machine. With HF_HUB_OFFLINE=0 it is fetched if it is not
there. The models it lists, most popular first, are in popular.py; `python -m benchmodels.zoo refresh FILE` writes a newer list,
and BENCHWRIGHT_POPULAR names that file.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any, Iterable, List

from benchmodels.types import Details
from benchmodels.zoo.base import NEEDS_NETWORK, NO_FORWARD, NotInZoo, ZooEntry, ZooModel, ZooRequest, version_of
from benchmodels.zoo.popular import MODELS
from benchmodels.zoo.vision_import import declare_operators

LIST = "BENCHWRIGHT_POPULAR"
TASKS_OF_PIPELINES = {
    **dict.fromkeys(("image-classification", "object-detection", "image-segmentation", "depth-estimation"), "vision"),
    **dict.fromkeys(("image-feature-extraction", "zero-shot-object-detection"), "vision"),
    **dict.fromkeys(("automatic-speech-recognition", "audio-classification", "text-to-speech"), "audio"),
    **dict.fromkeys(("image-to-text", "image-text-to-text", "zero-shot-image-classification"), "multimodal"),
    "time-series-forecasting": "time-series",
}


class HuggingFaceZoo:
    """Any model of the hub that transformers knows; the popular ones are listed."""

    name = "hf"
    packages = ("transformers>=5", "huggingface_hub")

    def version(self) -> str:
        return version_of("transformers")

    def entries(self) -> Iterable[ZooEntry]:
        for rank, model in enumerate(popular_models(), 1):
            author = model["id"].rpartition("/")[0] or "huggingface"
            task = TASKS_OF_PIPELINES.get(model["task"], "text")
            yield ZooEntry(
                self.name, model["id"], task, {"author": author, "rank": str(rank), "pipeline": model["task"]}
            )

    def build(self, request: ZooRequest) -> ZooModel:
        declare_operators()  # transformers imports torchvision if it is installed
        transformers: Any = import_module("transformers")
        online = os.environ.get("HF_HUB_OFFLINE", "1").lower() in ("0", "false", "no", "off")
        try:
            config = transformers.AutoConfig.from_pretrained(request.name, local_files_only=not online)
        except OSError as error:
            if online:
                raise NotInZoo(f"{request.name}: {str(error).splitlines()[0]}", NEEDS_NETWORK) from error
            text = f"config.json of {request.name} is not in the cache of this machine; HF_HUB_OFFLINE=0 lets it be fetched"
            raise NotInZoo(text, NEEDS_NETWORK) from error
        kind = _class_of(transformers, config)
        from benchmodels.zoo.transformers.build import from_config

        return from_config(kind, config, request)


def _class_of(transformers: Any, config: Any) -> Any:
    for name in config.architectures or ():
        if hasattr(transformers, name):
            return getattr(transformers, name)
    raise NotInZoo(f"transformers has no class {' or '.join(config.architectures or ['for it'])}", NO_FORWARD)


def popular_models() -> List[Details]:
    """Identifier and task of each, most popular first."""
    place = os.environ.get(LIST)
    if not place:
        return [{"id": name, "task": task} for name, task in MODELS]
    with open(place, encoding="utf-8") as file:
        models: List[Details] = json.load(file)["models"]
    return models


def refresh(place: str, count: int = 300) -> int:
    """Asks the hub, which needs the network, and writes the list to a file; returns how many it has."""
    hub: Any = import_module("huggingface_hub")
    found = hub.list_models(library="transformers", sort="downloads", limit=count)
    models = [{"id": each.id, "task": each.pipeline_tag or "text-generation"} for each in found]
    with open(place, "w", encoding="utf-8") as file:
        json.dump({"models": models}, file, indent=1)
    return len(models)

"""Models of the Hugging Face hub: the configuration of `hf:org/name`, with random weights.

Only config.json is needed, and it is read from the hub's cache on this machine. With HF_HUB_OFFLINE=0 it is fetched if it is not
there. Where it is not, the models of popular.py are built with the sizes written there. `python -m benchmodels.zoo refresh FILE`
writes a list of the most downloaded models of today, and BENCHWRIGHT_POPULAR names that file.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any, Iterable, List, Optional

from benchmodels.types import Details
from benchmodels.zoo.base import NEEDS_NETWORK, NO_FORWARD, NotInZoo, ZooEntry, ZooModel, ZooRequest, version_of
from benchmodels.zoo.popular import PopularModel, popular_models
from benchmodels.zoo.vision_import import declare_operators

LIST = "BENCHWRIGHT_POPULAR"
TASKS_OF_PIPELINES = {
    **dict.fromkeys(("image-classification", "depth-estimation", "image-feature-extraction"), "vision"),
    **dict.fromkeys(("object-detection", "zero-shot-object-detection"), "detection"),
    **dict.fromkeys(("image-segmentation", "mask-generation"), "segmentation"),
    **dict.fromkeys(("automatic-speech-recognition", "audio-classification", "text-to-speech"), "audio"),
    **dict.fromkeys(("image-to-text", "image-text-to-text", "zero-shot-image-classification"), "multimodal"),
    "visual-question-answering": "multimodal",
    "video-classification": "video",
    "time-series-forecasting": "time-series",
}
LISTED = "benchwright's list, not from config.json"  # part of identities: other words would make other models


class HuggingFaceZoo:
    """Any model of the hub that transformers knows; the popular ones are listed."""

    name = "hf"
    packages = ("transformers>=5", "huggingface_hub")

    def version(self) -> str:
        return version_of("transformers")

    def entries(self) -> Iterable[ZooEntry]:
        online = _is_online()
        known = {model.id: model for model in popular_models()}
        for model in _listed_models():
            author = model["id"].rpartition("/")[0] or "huggingface"
            own = known.get(model["id"])
            task = TASKS_OF_PIPELINES.get(model["task"], own.takes if own else "text")
            labels = {"author": author, "pipeline": model["task"]}
            if own:
                labels["architecture"] = own.kind
            if "rank" in model:
                labels["rank"] = str(model["rank"])
            sizes_from = LISTED if own and not online and not _is_cached(model["id"]) else ""
            yield ZooEntry(self.name, model["id"], task, labels, sizes_from=sizes_from)

    def build(self, request: ZooRequest) -> ZooModel:
        declare_operators()  # transformers imports torchvision if it is installed
        from benchmodels.zoo.transformers.build import config_of, from_config

        transformers: Any = import_module("transformers")
        model = None if _is_online() or _is_cached(request.name) else _popular(request.name)
        if model is None:
            config = _config(transformers, request.name)
            return from_config(_class_of(transformers, config), config, request)
        kind = _class_named(transformers, [model.kind])
        return from_config(kind, config_of(kind, model.sizes), request)


def _is_online() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "1").lower() in ("0", "false", "no", "off")


def _is_cached(name: str) -> bool:
    hub: Any = import_module("huggingface_hub")
    return isinstance(hub.try_to_load_from_cache(name, "config.json"), str)


def _popular(name: str) -> Optional[PopularModel]:
    return next((model for model in popular_models() if model.id == name), None)


def _config(transformers: Any, name: str) -> Any:
    online = _is_online()
    try:
        return transformers.AutoConfig.from_pretrained(name, local_files_only=not online)
    except OSError as error:
        if online:
            raise NotInZoo(f"{name}: {str(error).splitlines()[0]}", NEEDS_NETWORK) from error
        text = f"config.json of {name} is not in the cache of this machine; HF_HUB_OFFLINE=0 lets it be fetched"
        raise NotInZoo(text, NEEDS_NETWORK) from error


def _class_of(transformers: Any, config: Any) -> Any:
    return _class_named(transformers, config.architectures or ["for it"])


def _class_named(transformers: Any, names: List[str]) -> Any:
    """The first of them that the library has."""
    found = [getattr(transformers, name) for name in names if hasattr(transformers, name)]
    if not found:
        raise NotInZoo(f"transformers has no class {' or '.join(names)}", NO_FORWARD)
    return found[0]


def _listed_models() -> List[Details]:
    """Identifier and task of each model, most downloaded first: from the built-in list, or from a newer one."""
    place = os.environ.get(LIST)
    if not place:
        return [{"id": model.id, "task": model.task} for model in popular_models()]
    with open(place, encoding="utf-8") as file:
        models: List[Details] = json.load(file)["models"]
    return [{**model, "rank": rank} for rank, model in enumerate(models, 1)]


def refresh(place: str, count: int = 300) -> int:
    """Asks the hub, which needs the network, and writes the list to a file; returns how many it has."""
    hub: Any = import_module("huggingface_hub")
    found = hub.list_models(library="transformers", sort="downloads", limit=count)
    models = [{"id": each.id, "task": each.pipeline_tag or "text-generation"} for each in found]
    with open(place, "w", encoding="utf-8") as file:
        json.dump({"models": models}, file, indent=1)
    return len(models)

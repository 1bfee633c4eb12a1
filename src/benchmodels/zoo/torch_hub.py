"""torch.hub: the models of pytorch/vision, which are torchvision's, and those of repositories that are already on this machine."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Iterable, List, Tuple

from benchmodels.zoo.base import NEEDS_NETWORK, NOT_POSSIBLE, NotInZoo, ZooEntry, ZooModel, ZooRequest, version_of
from benchmodels.zoo.downscale import first_that_runs, image_side
from benchmodels.zoo.torchvision import TorchvisionZoo

VISION = "pytorch/vision"
HUB_TASKS = ("vision", "segmentation", "video")  # what pytorch/vision offers there


class TorchHubZoo:
    """`torch-hub:pytorch/vision/resnet18`, or OWNER/REPOSITORY/MODEL of a repository in torch.hub's folder."""

    name = "torch-hub"
    packages = ("torchvision",)

    def version(self) -> str:
        """Of torchvision: what it lists comes from there."""
        return version_of("torchvision")

    def entries(self) -> Iterable[ZooEntry]:
        for entry in TorchvisionZoo().entries():
            if entry.task in HUB_TASKS:
                same = f"{entry.zoo}:{entry.name}"
                yield ZooEntry(self.name, f"{VISION}/{entry.name}", entry.task, entry.labels, same)

    def build(self, request: ZooRequest) -> ZooModel:
        repository, _, model = request.name.rpartition("/")
        if repository.partition(":")[0] == VISION:
            return TorchvisionZoo().build(request._replace(name=model))
        if repository.count("/") != 1:
            raise NotInZoo(f"'{request.name}' is not OWNER/REPOSITORY/MODEL", NOT_POSSIBLE)
        torch: Any = import_module("torch")
        folder = _folder(torch, repository)
        made = torch.hub.load(folder, model, source="local", pretrained=False, trust_repo=True)
        side = image_side(request, 224)
        height, width = request.size("height", side), request.size("width", side)
        batch = request.size("batch_size", 1)

        def with_images() -> ZooModel:
            return ZooModel(made.eval(), (torch.rand(batch, 3, height, width),), {}, batch, "the zoo's batch_size")

        return first_that_runs([with_images])


def _folder(torch: Any, repository: str) -> str:
    """Of a repository that torch.hub has fetched before; NotInZoo if it has not."""
    owner_and_name, _, branch = repository.partition(":")
    prefix = owner_and_name.replace("/", "_") + "_" + branch
    place = torch.hub.get_dir()
    found: List[Tuple[str, str]] = []
    if os.path.isdir(place):
        found = [(name, os.path.join(place, name)) for name in sorted(os.listdir(place)) if name.startswith(prefix)]
    if not found:
        raise NotInZoo(
            f"{repository} is not in {place}, and nothing is downloaded here; fetch it once with torch.hub.load",
            NEEDS_NETWORK,
        )
    return found[0][1]

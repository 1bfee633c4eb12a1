"""The zoo `transformers`: `transformers:bert` is the base model, `transformers:bert/causal-lm` the one with that head."""

from __future__ import annotations

import difflib
from typing import Iterable

from benchmodels.zoo.base import NOT_POSSIBLE, NotInZoo, ZooEntry, ZooModel, ZooRequest, version_of
from benchmodels.zoo.transformers.catalogue import BASE, architectures, classes_by_type
from benchmodels.zoo.vision_import import declare_operators


class TransformersZoo:
    """Each architecture of the auto classes. One with a head is built if it is named; the list has the base models."""

    name = "transformers"
    packages = ("transformers>=5", "scipy")  # some models import scipy for their losses

    def version(self) -> str:
        return version_of("transformers")

    def entries(self) -> Iterable[ZooEntry]:
        for model_type, architecture in architectures().items():
            labels = {
                "model_type": model_type,
                "family": architecture.family,
                "class": architecture.classes[architecture.head],
                "task": architecture.task,
                "inputs": "+".join(architecture.takes),
                "heads": "+".join(head for head in architecture.classes if head != BASE),
                "author": architecture.author,
            }
            given = {key: value for key, value in labels.items() if value}
            yield ZooEntry(self.name, model_type, architecture.task, given)

    def build(self, request: ZooRequest) -> ZooModel:
        from benchmodels.zoo.transformers.build import build

        declare_operators()  # transformers imports torchvision if it is installed
        model_type, _, head = request.name.partition("/")
        known = classes_by_type()
        if model_type not in known:
            near = difflib.get_close_matches(model_type, list(known), 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise NotInZoo(f"transformers {self.version()} has no architecture '{model_type}'{hint}", NOT_POSSIBLE)
        architecture = known[model_type]
        chosen = head or architecture.head
        if chosen not in architecture.classes:
            raise NotInZoo(
                f"'{model_type}' has no head '{head}'; it has {', '.join(architecture.classes)}", NOT_POSSIBLE
            )
        return build(architecture, chosen, request)

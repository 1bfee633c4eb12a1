"""The name of a model's build for people, and the labels that are kept with it."""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping

from benchwright.core.model import Model

CORPUS, AUTHOR = "corpus", "author"
_SHOWN_DIGITS = 8  # of an identity


def build_name(model: Model, labels: Mapping[str, str]) -> str:
    """`<script>_<author>_<hash>`; without an author, `<script>_<hash>`. Safe as the name of a file."""
    words = (
        stem_of(model) or labels.get("name", model.class_),
        labels.get(AUTHOR, "").partition(",")[0],
        model.identity[:_SHOWN_DIGITS],
    )
    return "_".join(re.sub(r"[^\w.+-]", "-", word) for word in words if word)


def all_labels(model: Model, labels: Mapping[str, str]) -> dict[str, str]:
    """Its labels, with the corpus it belongs to."""
    corpus = corpus_of(model, labels)
    return {**labels, **({CORPUS: corpus} if corpus else {})}


def corpus_of(model: Model, labels: Mapping[str, str]) -> str:
    """As its labels say; else the zoo, or the name of the folder that its script or file is in."""
    if labels.get(CORPUS):
        return labels[CORPUS]
    if zoo := model.zoo:
        return zoo.partition(":")[0]
    return os.path.basename(os.path.dirname(model.script or model.file or ""))


def stem_of(model: Model) -> str:
    """`bert` of `/models/bert.py`; `transformers-bert` of a zoo; nothing of a model that a process held."""
    if zoo := model.zoo:
        return zoo.replace(":", "-")
    return os.path.splitext(os.path.basename(model.script or model.file or ""))[0]

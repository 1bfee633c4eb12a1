"""Targets such as `timm:resnet*,vit_*` as the models they mean."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.models.script_notes import matches_label
from benchwright.kinds.models.zoo.catalogue import ListedModel, ListedZoo, listed_zoos
from benchwright.kinds.models.zoo.interpreters import ZooPythons

_TARGET = re.compile(r"[A-Za-z][\w-]+:(?![:/\\]|https?://)[^\s]+", re.ASCII)
# Corpora of the tools that came before, by their names there; `popular` is short for the last.
CORPORA = {
    "transformers": "transformers:*",
    "diffusers": "diffusers:*",
    "timm": "timm:*",
    "torchvision": "torchvision:*",
    "torch_hub": "torch-hub:*",
    "graph_convolutions": "pyg:*",
    "popular_on_huggingface": "hf:*",
    "popular": "hf:*",
}


def is_zoo_target(target: str) -> bool:
    """`zoo:model`, whether or not there is such a zoo; not a file, an address or `script.py::Model`."""
    return _TARGET.fullmatch(target) is not None and not os.path.exists(target)


def words_of(target: str) -> list[tuple[str, str]]:
    """Zoo and name or pattern of each part of a comma list; a part without a zoo is of the one before it."""
    zoo, words = "", []
    for part in target.split(","):
        before, colon, after = part.strip().partition(":")
        zoo, word = (before, after) if colon and re.fullmatch(r"[A-Za-z][\w-]+", before) else (zoo, part.strip())
        if word:
            words.append((zoo, word))
    return words


def models_meant(target: str, pythons: ZooPythons) -> list[ListedModel]:
    """In the order of the zoo, each once; InvalidInput for an unknown zoo or name, or a zoo that is not installed."""
    found: dict[str, ListedModel] = {}
    for zoo, word in words_of(target):
        listed = zoo_of(zoo, pythons, target)
        for model in _matching(listed, word, target):
            found.setdefault(model.target, model)
    return list(found.values())


def zoo_of(name: str, pythons: ZooPythons, target: str) -> ListedZoo:
    """The zoo as its interpreter has it."""
    from benchmodels.zoo.registry import BUILT_IN

    python = pythons.of(name)
    known = listed_zoos(python, [name] if name in BUILT_IN else ())
    if name not in known:
        remedy = did_you_mean(name, known) or f"name one of {', '.join(known)}, or install its plug-in"
        raise InvalidInput(f"unknown zoo '{name}'", where=target, remedy=remedy)
    zoo = known[name]
    if zoo.problem is not None:
        raise InvalidInput(
            f"the zoo '{name}' cannot be listed: {zoo.problem}", where=target, remedy="check its package"
        )
    if not zoo.version:
        remedy = (
            f"install it with 'benchwright install --zoo {name}', or choose an interpreter that has it with --python"
        )
        raise InvalidInput(f"the zoo '{name}' is not installed in {python}", where=target, remedy=remedy)
    return zoo


def _matching(zoo: ListedZoo, word: str, target: str) -> list[ListedModel]:
    by_name = {model.name: model for model in zoo.models}
    if word in by_name:
        return [by_name[word]]
    if found := _with_head(zoo, word):
        return found
    if any(sign in word for sign in "*?["):
        if found := [model for model in zoo.models if fnmatch.fnmatchcase(model.name, word)]:
            return found
        raise InvalidInput(
            f"no model of '{zoo.zoo}' matches '{word}'", where=target, remedy=f"see 'benchwright find {zoo.zoo}:*'"
        )
    if open_ended(zoo):  # what it lists are examples
        return [ListedModel(zoo=zoo.zoo, name=word, task="other")]
    names = _heads_of(zoo, word) or by_name
    remedy = did_you_mean(word, names) or f"see 'benchwright find {zoo.zoo}:*'"
    raise InvalidInput(f"the zoo '{zoo.zoo}' has no model '{word}'", where=target, remedy=remedy)


def _with_head(zoo: ListedZoo, word: str) -> list[ListedModel]:
    """`bert/causal-lm`: a listed model with one of the heads that its label `heads` names."""
    base, slash, head = word.partition("/")
    fitting = [m for m in zoo.models if fnmatch.fnmatchcase(m.name, base)] if slash else []
    return [
        msgspec.structs.replace(model, name=f"{model.name}/{each}", labels=model.labels | {"head": each})
        for model in fitting
        for each in model.labels.get("heads", "").split("+")
        if each and fnmatch.fnmatchcase(each, head)
    ]


def _heads_of(zoo: ListedZoo, word: str) -> list[str]:
    """`bert/causal-lm` and all others of bert, if that is what `word` begins with."""
    return [model.name for model in _with_head(zoo, f"{word.partition('/')[0]}/*")] if "/" in word else []


def open_ended(zoo: ListedZoo) -> bool:
    """Whether it has more models than it lists, such as those of a hub."""
    return zoo.zoo in ("hf", "torch-hub")


def chosen(
    models: Sequence[ListedModel], *, tasks: Sequence[str], select: Sequence[str], exclude: Sequence[str], target: str
) -> list[ListedModel]:
    """Models left by --task, --select and --exclude; InvalidInput if there are none."""
    found = [m for m in models if not tasks or m.task in tasks or m.name in tasks]
    if tasks and models and not found:
        known = sorted({m.task for m in models})
        remedy = did_you_mean(tasks[0], known) or f"use one of {', '.join(known)}"
        raise InvalidInput(f"no model of it is of the task '{tasks[0]}'", where="--task", remedy=remedy)
    labels, names = _split(select)
    found = [m for m in found if _has_all(m, labels) and (not names or _is_one_of(m, names))]
    no_labels, no_names = _split(exclude)
    found = [m for m in found if not any(_has_all(m, [each]) for each in no_labels) and not _is_one_of(m, no_names)]
    if models and not found:
        remedy = f"see the labels with 'benchwright find {target} --json'"
        raise InvalidInput("no model is left after --select and --exclude", where=target, remedy=remedy)
    return found


def _split(words: Iterable[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Labels as key and value, and names or patterns."""
    words = list(words)
    pairs = [word.partition("=") for word in words if "=" in word]
    return [(key, value) for key, _, value in pairs], [word for word in words if "=" not in word]


def _has_all(model: ListedModel, labels: Iterable[tuple[str, str]]) -> bool:
    return all(matches_label(model.all_labels, key, value) for key, value in labels)


def _is_one_of(model: ListedModel, names: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, name) for name in names for text in (model.name, model.target))


def each_once(models: Iterable[ListedModel]) -> list[ListedModel]:
    """Each model once, under its first name."""
    first: dict[str, ListedModel] = {}
    for model in models:
        first.setdefault(model.canonical, model)
    return list(first.values())

"""The labels of a model, kept beside the builds by the name of its build: `labels/<name>.txt`."""

from __future__ import annotations

import os
import re
import uuid
from typing import Dict, List, Mapping

FOLDER = "labels"  # beside `builds`
PREFIX = "# labels:"


def labels_path(cache_dir: str, name: str) -> str:
    """Of the build called `name`; ValueError if that cannot be the name of one."""
    if not name or os.path.basename(name) != name or name in (os.curdir, os.pardir):
        raise ValueError(f"{name!r} is not the name of a build")
    return os.path.join(cache_dir, FOLDER, f"{name}.txt")


def keep_labels(builds: str, name: str, labels: Mapping[str, str]) -> None:
    """Writes them beside the folder `builds`: `author::google group::daily,monthly`. Several values are joined by commas."""
    path = labels_path(os.path.dirname(os.path.abspath(builds)), name)
    text = " ".join(f"{_plain(key)}::{_plain(value)}" for key, value in labels.items() if value)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = f"{path}.{uuid.uuid4().hex}.aside"
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(aside, path)


def kept_labels(cache_dir: str, name: str) -> Dict[str, List[str]]:
    """The labels of a build; FileNotFoundError if it has none here, ValueError for a malformed one."""
    with open(labels_path(cache_dir, name), encoding="utf-8") as file:
        first = file.readline()
    return to_dict(first[len(PREFIX) :].split() if first.startswith(PREFIX) else first.split())


def to_dict(words: List[str]) -> Dict[str, List[str]]:
    """`["author::google", "group::a,b"]` as `{"author": ["google"], "group": ["a", "b"]}`; ValueError names a malformed one."""
    labels: Dict[str, List[str]] = {}
    for item in words:
        key, separator, values = item.partition("::")
        if not separator or not key:
            raise ValueError(f"label {item!r} must have the form key::value1,value2")
        labels[key] = values.split(",")
    return labels


def _plain(text: str) -> str:
    """In one word: blanks separate labels."""
    return re.sub(r"\s+", "_", text.strip())

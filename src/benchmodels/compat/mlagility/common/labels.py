"""Labels of model scripts: `# labels: author::google test_group::daily,monthly` on a script's first line."""

from __future__ import annotations

import os
from typing import Dict, List

PREFIX = "# labels:"


def to_dict(label_list: List[str]) -> Dict[str, List[str]]:
    """`["author::google", "group::a,b"]` as `{"author": ["google"], "group": ["a", "b"]}`; ValueError names a malformed one."""
    labels: Dict[str, List[str]] = {}
    for item in label_list:
        key, separator, values = item.partition("::")
        if not separator or not key:
            raise ValueError(f"label {item!r} must have the form key::value1,value2")
        labels[key] = values.split(",")
    return labels


def load_from_file(file_path: str) -> Dict[str, List[str]]:
    """The labels of a script; none if its first line has none."""
    with open(file_path, encoding="utf-8") as file:
        first = file.readline()
    return to_dict(first[len(PREFIX) :].split()) if first.startswith(PREFIX) else {}


def load_from_cache(cache_dir: str, build_name: str) -> Dict[str, List[str]]:
    """The labels kept with a build, in `labels/<build_name>.txt` of the cache folder."""
    with open(os.path.join(cache_dir, "labels", f"{build_name}.txt"), encoding="utf-8") as file:
        first = file.readline()
    return to_dict(first[len(PREFIX) :].split() if first.startswith(PREFIX) else first.split())

"""Labels of model scripts: `# labels: author::google test_group::daily,monthly` on a script's first line."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Sequence

from benchmodels.build.labels import PREFIX, keep_labels, kept_labels, to_dict

__all__ = ["load_from_cache", "load_from_file", "save_to_cache", "to_dict"]


def load_from_file(file_path: str) -> Dict[str, List[str]]:
    """The labels of a script; none if its first line has none."""
    with open(file_path, encoding="utf-8") as file:
        first = file.readline()
    return to_dict(first[len(PREFIX) :].split()) if first.startswith(PREFIX) else {}


def load_from_cache(cache_dir: str, build_name: str) -> Dict[str, List[str]]:
    """The labels kept with a build, in `labels/<build_name>.txt` of the cache folder."""
    return kept_labels(os.path.expanduser(cache_dir), build_name)


def save_to_cache(cache_dir: str, build_name: str, label_dict: Mapping[str, Sequence[str]]) -> None:
    """Keeps labels with a build."""
    builds = os.path.join(os.path.expanduser(cache_dir), "builds")
    keep_labels(builds, build_name, {key: ",".join(values) for key, values in label_dict.items()})

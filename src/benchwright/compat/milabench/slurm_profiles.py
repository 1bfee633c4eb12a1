"""milabench's `slurm.yaml`: profiles of `milabench schedule`, each a list of sbatch's options."""

from __future__ import annotations

import os
import shlex
from typing import Any

import yaml

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.dialect import SlurmProfiles

_PLACES = ("slurm.yaml", "config/slurm.yaml", "config/clusters/slurm.yaml", "clusters/slurm.yaml")
_REMEDY = "write NAME: [--partition=gpu, --time=60]"


def find_profiles(folder: str) -> SlurmProfiles | None:
    """The profiles of the first such file in `folder`, a suite's or a checkout's."""
    file = next((path for place in _PLACES if os.path.isfile(path := os.path.join(folder, place))), None)
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8") as opened:
            body = yaml.safe_load(opened)
    except (OSError, ValueError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise InvalidInput(f"cannot be read: {why}", where=file, remedy=_REMEDY) from error
    if not isinstance(body, dict):
        raise InvalidInput("has no profiles", where=file, remedy=_REMEDY)
    return SlurmProfiles(file, {str(name): _words(file, name, items) for name, items in body.items()})


def _words(file: str, name: object, items: Any) -> tuple[str, ...]:
    """`-w cn-d[003-004]` is one item and becomes two words."""
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise InvalidInput(f"'{name}' is not a list of options", where=file, remedy=_REMEDY)
    return tuple(word for item in items for word in shlex.split(item))

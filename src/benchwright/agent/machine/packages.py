"""The packages of an environment, by the names of their *.dist-info folders: nothing is imported or parsed."""

from __future__ import annotations

import os
from collections.abc import Iterable


def list_packages(path_entries: Iterable[str]) -> dict[str, str]:
    """Name → version, sorted by name, for the folders of a Python's path. If listed twice, the first on the path counts."""
    found: dict[str, str] = {}
    for folder in path_entries:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue  # a zip file or a missing folder, which Python skips too
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                package, dash, version = name.rpartition(".")[0].partition("-")
                if dash:
                    found.setdefault(normalized(package), version.partition("-")[0])
    return dict(sorted(found.items()))


def normalized(name: str) -> str:
    """A package's name as the index compares it: lower case, with one `-` for each run of `-`, `_` and `.`."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)

"""The specifications that come with benchwright, found by their name."""

from __future__ import annotations

import glob
import os.path

from benchwright.kinds.shipped_root import shipped_root

_FOLDER = "specifications"


def shipped_specifications() -> dict[str, str]:
    """Name → path, of every specification and list of them that is shipped."""
    folder = os.path.join(shipped_root(), _FOLDER)
    found = [glob.glob(os.path.join(folder, *parts, "*.json")) for parts in (("models", "*", "*"), ("benchmarks",))]
    return {os.path.splitext(os.path.basename(path))[0]: path for path in sorted(p for paths in found for p in paths)}


def shipped_specification(target: str) -> str | None:
    """The path of the one called `matrix`, `matrix.json` or by its path in the repository; None if none is."""
    if target.startswith(f"{_FOLDER}/") and ".." not in target:
        path = os.path.join(shipped_root(), target)
        return path if os.path.isfile(path) else None
    name = target.removesuffix(".json")
    return None if "/" in name else shipped_specifications().get(name)

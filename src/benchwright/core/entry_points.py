"""Entry points of the packages on Python's path, read from their entry_points.txt.

The agent uses this too, where importlib.metadata would cost more than all its other imports.
"""

from __future__ import annotations

import importlib  # at the top: otherwise each supervisor that the agent forks would import it again
import os
import sys
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class EntryPoint:
    """`name` → `target`, written `module:attribute`, as `package` declares it."""

    __slots__ = ("name", "package", "target", "version")

    def __init__(self, name: str, target: str, package: str, version: str) -> None:
        self.name = name
        self.target = target
        self.package = package
        self.version = version


def find_entry_points(group: str, path: Iterable[str] | None = None) -> dict[str, EntryPoint]:
    """The group's entry points in the folders of `path` (default: sys.path), by name; of a name, and of copies of a package, the first."""
    found: dict[str, EntryPoint] = {}
    seen: set[str] = set()
    for folder in sys.path if path is None else path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue  # a zip file or a missing folder, which Python skips too
        for name in sorted(names):
            if name.endswith((".dist-info", ".egg-info")) and (package := name.partition("-")[0].lower()) not in seen:
                seen.add(package)
                for entry in _read_group(os.path.join(folder, name), group):
                    found.setdefault(entry.name, entry)
    return found


def own_entry_points(group: str) -> dict[str, EntryPoint]:
    """Entry points of benchwright itself, by name, without a look at any other package."""
    return {entry.name: entry for entry in _read_group(own_metadata(), group)}


@cache
def own_metadata() -> str:
    """The folder `benchwright-VERSION.dist-info` that belongs to this code: beside it, else the first on Python's path."""
    beside = __file__.rpartition("/benchwright/")[0]
    for folder in (beside, *sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith("benchwright-") and name.endswith(".dist-info"):
                return os.path.join(os.path.abspath(folder), name)
    raise ModuleNotFoundError("benchwright is on Python's path, but not installed: pip install -e PATH")


def load_target(target: str) -> Any:
    """The object that `module:attribute` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _read_group(folder: str, group: str) -> list[EntryPoint]:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            text = file.read()
    except OSError:
        return []
    _, header, rest = text.partition(f"[{group}]".encode())
    if not header:
        return []
    package, _, version = os.path.basename(folder).rpartition(".")[0].partition("-")
    section = rest.split(b"\n[", 1)[0].decode(errors="replace")
    pairs = (line.partition("=") for line in section.splitlines())
    return [
        EntryPoint(name.strip(), target.partition("[")[0].strip(), package, version)
        for name, equals, target in pairs
        if equals and not name.lstrip().startswith(("#", ";"))
    ]

"""Entry points of the packages on Python's path, read from their entry_points.txt.

The agent uses this too, where importlib.metadata would cost more than all its other imports.
"""

from __future__ import annotations

import importlib  # at the top: otherwise each supervisor that the agent forks would import it again
import os
import sys
import time
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_SETTLED_S = 2.0


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
        for name, text in _declared(folder):
            if (package := name.partition("-")[0].lower()) not in seen:
                seen.add(package)
                for entry in _entries(name, text, group):
                    found.setdefault(entry.name, entry)
    return found


def _declared(folder: str) -> Sequence[tuple[str, bytes]]:
    """The packages in a folder by the names of their *.dist-info, each with the text of its entry points."""
    try:
        folder = os.path.abspath(folder)
        changed_s = os.stat(folder).st_mtime
        # Right after a change, another one might leave the same time.
        read = _read_folder if time.time() - changed_s > _SETTLED_S else _read_folder.__wrapped__
        return read(folder, changed_s)
    except OSError:
        return ()  # a zip file or a missing folder, which Python skips too


@cache
def _read_folder(folder: str, changed_s: float) -> Sequence[tuple[str, bytes]]:
    names = sorted(name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info")))
    return [(name, _text_of(os.path.join(folder, name))) for name in names]


def own_entry_points(group: str) -> dict[str, EntryPoint]:
    """Entry points of benchwright itself, by name, without a look at any other package."""
    folder = own_metadata()
    return {entry.name: entry for entry in _entries(os.path.basename(folder), _text_of(folder), group)}


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


def _text_of(folder: str) -> bytes:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return file.read()
    except OSError:
        return b""


def _entries(metadata: str, text: bytes, group: str) -> list[EntryPoint]:
    _, header, rest = text.partition(f"[{group}]".encode())
    if not header:
        return []
    package, _, version = metadata.rpartition(".")[0].partition("-")
    section = rest.split(b"\n[", 1)[0].decode(errors="replace")
    pairs = (line.partition("=") for line in section.splitlines())
    return [
        EntryPoint(name.strip(), target.partition("[")[0].strip(), package, version)
        for name, equals, target in pairs
        if equals and not name.lstrip().startswith(("#", ";"))
    ]

"""What a cached build consists of: a manifest with the size and hash of each of its files, and how it is held to it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple

FORMAT = 1
MANIFEST = "manifest.json"


class Corrupt(Exception):
    """The files of an entry are not what its manifest says; the text names the first."""


class FileMark(NamedTuple):
    """What the manifest says of a file."""

    size: int
    sha256: str


def described(folder: Path) -> Dict[str, Dict[str, Any]]:
    """Size and hash of each file in `folder`, which are on the disk then."""
    found: Dict[str, Dict[str, Any]] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            found[path.relative_to(folder).as_posix()] = _mark(path, sync=True)._asdict()
        sync_folder(Path(place))
    return found


def read_manifest(folder: Path, key: str) -> Dict[str, Any]:
    """FileNotFoundError if there is no such folder; Corrupt if there is no manifest of ours in it."""
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    try:
        if not (folder / MANIFEST).is_file():  # of a pipe one would wait for the end
            raise Corrupt(f"{MANIFEST} is missing")
        raw: Any = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise Corrupt(f"{MANIFEST}: {type(error).__name__}") from error
    kinds = {"mark": str, "key": str, "parts": dict, "steps": list, "files": dict}
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise Corrupt(f"{MANIFEST} is of another format")
    manifest: Dict[str, Any] = raw
    if not all(isinstance(manifest.get(name), kind) for name, kind in kinds.items()) or manifest["key"] != key:
        raise Corrupt(f"{MANIFEST} is not that of this entry")
    return manifest


def verify(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Corrupt if a file is missing or not what it was. Every byte is read: it is not in any timed region."""
    files: Mapping[str, Any] = manifest["files"]
    if not files:
        raise Corrupt("it has no files")
    for name, expected in files.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise Corrupt(f"{name} is outside of it")
        try:
            if not path.is_file():
                raise Corrupt(f"{name} is missing")
            if path.stat().st_size != expected["size"]:
                raise Corrupt(f"{name} has {path.stat().st_size} bytes, not {expected['size']}")
            if _mark(path).sha256 != expected["sha256"]:
                raise Corrupt(f"the content of {name} has changed")
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise Corrupt(f"{name}: {type(error).__name__}: {error}") from error


def _mark(path: Path, sync: bool = False) -> FileMark:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
        if sync:
            os.fsync(file.fileno())
        return FileMark(file.tell(), digest.hexdigest())


def write_synced(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Brings names, not only contents, to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Inventory of the build cache: each build with its name, runtime and labels, and the labels of models without one."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from benchmodels.build.cache import MANIFEST, Corrupt, read_manifest, verify
from benchmodels.build.labels import FOLDER, kept_labels, labels_path
from benchwright.artifacts.inventory import LEFTOVER, CacheEntry, entry_of, is_old, modified
from benchwright.artifacts.objects import ByteProgress
from benchwright.core.model import build_variant_of
from benchwright.environments.locks import locked

BUILD, LABELS, COMPILED, SEARCHES = "build", "labels", "compiled", "searches"
INDUCTOR, DISCOVERIES = "inductor", "discoveries"  # folders of all models, among those of builds
_OF_ALL = {INDUCTOR: COMPILED, DISCOVERIES: SEARCHES}


class BuildInventory:
    """Of the cached builds of models (benchmodels.build.cache)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> list[CacheEntry]:
        found = []
        for path in sorted(p for p in self.folder.glob("*") if p.is_dir() and not p.is_symlink()):
            if "." in path.name:  # .discovery-…, <key>.making-…, <key>.corrupt-…
                found += [entry_of(LEFTOVER, path.name, path.name, path)] if is_old(path) else []
            elif path.name in _OF_ALL:
                entry = entry_of(_OF_ALL[path.name], path.name, path.name, path)
                found += [entry] if entry.size_bytes else []
            else:
                found.append(self._build(path))
        return [*found, *self._labelled({entry.name for entry in found})]

    def verify(self, entry: CacheEntry, progress: ByteProgress) -> str | None:
        path = Path(entry.path)
        if entry.kind != BUILD or not (path / MANIFEST).exists():
            return None  # somebody else's folder
        try:
            verify(path, read_manifest(path, entry.id))
        except (Corrupt, OSError) as error:
            return f"{entry.path}: {error}; it is built again when it is next used"
        return None

    def remove(self, entry: CacheEntry) -> bool:
        if entry.kind == LABELS:
            Path(entry.path).unlink(missing_ok=True)
            return True
        lock = self.folder / f"{entry.id.partition('.')[0]}.lock"
        try:
            with locked(str(lock), stopped=lambda: True) if lock.exists() else nullcontext():
                shutil.rmtree(entry.path)
        except InterruptedError:
            return False
        return True

    def forget_labels(self, name: str) -> None:
        """Removes the labels of a model, unless a build of that name is left."""
        if not any(entry.kind == BUILD and entry.name == name for entry in self.entries()):
            Path(labels_path(str(self.folder.parent), name)).unlink(missing_ok=True)

    def manifest(self, entry: CacheEntry) -> dict[str, Any]:
        """Empty for an entry that has none."""
        try:
            return read_manifest(Path(entry.path), entry.id)
        except (Corrupt, OSError):
            return {}

    def _build(self, path: Path) -> CacheEntry:
        used = max(modified(path), modified(self.folder / f"{path.name}.lock"))
        entry = msgspec.structs.replace(entry_of(BUILD, path.name, path.name, path), last_used=used)
        manifest = self.manifest(entry)
        if not manifest:
            return entry
        parts, made, labels = manifest["parts"], manifest.get("made_at"), manifest.get("labels")
        return msgspec.structs.replace(
            entry,
            name=str(manifest.get("name") or _plain_name(parts) or path.name),
            made=made if isinstance(made, float) else None,
            runtime=str(parts.get("runtime", "")),
            precision=str(parts.get("precision", "")),
            way=" ".join(build_variant_of({**parts, **manifest})),
            labels={str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        )

    def _labelled(self, built: set[str]) -> list[CacheEntry]:
        """Models that were measured without a build, as torch-eager does."""
        beside = self.folder.parent
        found = []
        for path in sorted((beside / FOLDER).glob("*.txt")):
            if path.stem not in built:
                entry = entry_of(LABELS, path.stem, path.stem, path)
                found.append(msgspec.structs.replace(entry, labels=_labels(beside, path.stem), made=entry.last_used))
        return found


def _labels(cache_dir: Path, name: str) -> dict[str, str]:
    try:
        return {key: ",".join(values) for key, values in kept_labels(str(cache_dir), name).items()}
    except (OSError, ValueError):  # somebody else's file
        return {}


def _plain_name(parts: dict[str, Any]) -> str:
    """`mlp.py onnxruntime fp32`, of a build without a name, as far as its manifest tells."""
    subject = parts.get("path") or parts.get("script") or ""
    words = (os.path.basename(str(subject)), str(parts.get("runtime", "")), str(parts.get("precision", "")))
    return " ".join(word for word in words if word)

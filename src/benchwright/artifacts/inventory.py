"""Inventory of the caches: artifacts and builds are listed, verified and removed alike."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

import msgspec

from benchwright.artifacts.holds import unused
from benchwright.artifacts.limits import FetchLimits
from benchwright.artifacts.objects import ByteProgress, Objects
from benchwright.artifacts.side_by_side import drop_unlinked
from benchwright.artifacts.sources.download import part_state
from benchwright.artifacts.unpacked_archives import UnpackedArchives
from benchwright.core.errors import InvalidInput
from benchwright.environments.locks import locked

_ABANDONED_S = 24 * 3600.0
ARTIFACT, UNPACKED, PARTIAL, LEFTOVER = "artifact", "unpacked", "partial", "leftover"


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in a cache. `kind`: artifact, unpacked (an archive), partial (a download), build (of a model), labels (of a model
    that has no build), compiled (what torch.compile keeps, of all models), searches (the models found in scripts), revision (a
    build of one) or leftover (of a crash)."""

    kind: str
    id: str
    name: str
    path: str
    size_bytes: int
    last_used: float  # seconds since 1970
    location: str = ""  # where it came from, without secrets
    made: float | None = None  # seconds since 1970, where that is known
    runtime: str = ""  # of a build
    precision: str = ""
    way: str = ""  # how it was built, where that is not the usual way: `opset17 int8.py`
    labels: dict[str, str] = {}  # of the model; several values are joined by commas


class Inventory(Protocol):
    """A cache that can be managed."""

    folder: Path

    def entries(self) -> list[CacheEntry]: ...

    def verify(self, entry: CacheEntry, progress: ByteProgress) -> str | None:
        """The problem with it, or None. Reads all of it."""
        ...

    def remove(self, entry: CacheEntry) -> bool:
        """False if a process uses it. Raises OSError."""
        ...


class ArtifactInventory:
    """Of an artifact cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects = Objects(folder)
        self._archives = UnpackedArchives(folder, FetchLimits())

    def entries(self) -> list[CacheEntry]:
        return [*self._artifacts(), *self._unpacked(), *self._partial(), *self._leftovers()]

    def verify(self, entry: CacheEntry, progress: ByteProgress) -> str | None:
        if entry.kind == ARTIFACT and (record := self._objects.record(entry.id)) is not None:
            return self._objects.problem(record, progress)
        if entry.kind == UNPACKED and self._archives.find(entry.id) is None:
            return f"{entry.path}: files in it have changed; it is unpacked again when it is next used"
        return None

    def remove(self, entry: CacheEntry) -> bool:
        if entry.kind == UNPACKED:
            return self._archives.remove(entry.id)
        if entry.kind == PARTIAL:
            return self._remove_partial(entry)
        if entry.kind == LEFTOVER:
            with unused(Path(entry.path)) as free:
                if free:
                    shutil.rmtree(entry.path)
            return free
        gone = self._objects.remove(entry.id)
        drop_unlinked(self.folder)  # which would keep its space
        return gone

    def _artifacts(self) -> list[CacheEntry]:
        return [
            CacheEntry(
                kind=ARTIFACT,
                id=record.sha256,
                name=record.filename,
                path=str(self._objects.folder / record.sha256 / record.filename),
                size_bytes=record.state.size,
                last_used=self._objects.last_used(record.sha256),
                location=record.location,
            )
            for record in self._objects.records()
        ]

    def _unpacked(self) -> list[CacheEntry]:
        found = []
        for sha256 in self._archives.names():
            if (record := self._archives.record(sha256)) is not None:
                path = self._archives.folder / sha256
                used = modified(path)
                found.append(
                    CacheEntry(
                        kind=UNPACKED,
                        id=sha256,
                        name=record.name,
                        path=str(path),
                        size_bytes=record.size,
                        last_used=used,
                    )
                )
        return found

    def _partial(self) -> list[CacheEntry]:
        found = []
        for part in sorted((self.folder / "parts").glob("*.part")):
            state = part_state(part)
            name, location = (part.stem, "") if state is None else (state.name, state.location)
            found.append(entry_of(PARTIAL, part.stem, name, part, location))
        return found

    def _leftovers(self) -> list[CacheEntry]:
        asides = [*self._objects.without_record(), *(p for p in (self.folder / "parts").glob("*") if p.is_dir())]
        asides += [*(self.folder / "unpacked").glob(".*"), *(self.folder / "sets").glob(".*")]
        return [entry_of(LEFTOVER, path.name, path.name, path) for path in sorted(asides) if is_old(path)]

    def _remove_partial(self, entry: CacheEntry) -> bool:
        lock = self.folder / "locks" / f"{entry.id}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            with locked(str(lock), stopped=lambda: True):
                for path in (Path(entry.path), Path(entry.path).with_suffix(".json")):
                    path.unlink(missing_ok=True)
        except InterruptedError:
            return False
        return True


class CacheFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are meant; every condition that is given must hold. `names`: names, globs, or beginnings of ids."""

    names: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    runtimes: tuple[str, ...] = ()
    unused_s: float | None = None  # not used for so long

    def __call__(self, entry: CacheEntry) -> bool:
        labelled = all(value in entry.labels.get(key, "").split(",") for key, value in self.labels)
        used_long_ago = self.unused_s is None or time.time() - entry.last_used > self.unused_s
        named = not self.names or any(is_called(entry, name) for name in self.names)
        return named and labelled and used_long_ago and (not self.runtimes or entry.runtime in self.runtimes)


def is_called(entry: CacheEntry, word: str) -> bool:
    return fnmatchcase(entry.name, word) or entry.name == word or (len(word) >= 6 and entry.id.startswith(word))


def refuse_unknown(entries: Sequence[CacheEntry], names: Sequence[str]) -> None:
    """InvalidInput for a name that nothing has."""
    for name in names:
        if not any(is_called(entry, name) for entry in entries):
            raise InvalidInput(f"nothing in the cache is called '{name}'", remedy="see benchwright cache list")


def too_many(entries: Sequence[CacheEntry], max_bytes: int) -> list[CacheEntry]:
    """The least recently used entries to remove until the rest fits into `max_bytes`."""
    picked, total = [], sum(entry.size_bytes for entry in entries)
    for entry in oldest_first(entries):
        if total <= max_bytes:
            break
        picked.append(entry)
        total -= entry.size_bytes
    return picked


def oldest_first(entries: Sequence[CacheEntry]) -> list[CacheEntry]:
    return sorted(entries, key=lambda entry: entry.last_used)


def entry_of(kind: str, id: str, name: str, path: Path, location: str = "") -> CacheEntry:
    """With its size and time of change as they are."""
    size, used = _size_of(path), modified(path)
    return CacheEntry(kind=kind, id=id, name=name, path=str(path), size_bytes=size, last_used=used, location=location)


def _size_of(path: Path) -> int:
    if not path.is_dir():
        return _status(path)[0]
    return sum(_status(Path(place) / name)[0] for place, _, names in os.walk(path) for name in names)


def modified(path: Path) -> float:
    """When, in seconds since 1970; 0 if it has gone."""
    return _status(path)[1]


def _status(path: Path) -> tuple[int, float]:
    """Its size and when it was modified; zeros if it has gone."""
    with suppress(OSError):
        status = os.lstat(path)
        return status.st_size, status.st_mtime
    return 0, 0.0


def is_old(path: Path) -> bool:
    """Whether nobody can be writing it any more."""
    return time.time() - modified(path) > _ABANDONED_S

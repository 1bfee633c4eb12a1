"""Unpacked archives, by the SHA-256 of the archive; one whose files were changed is unpacked again.

unpacked/<sha256>/        the content
unpacked/<sha256>.json    what its files looked like when they were unpacked
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import msgspec

from benchwright.artifacts.holds import Holds, unused
from benchwright.artifacts.limits import FetchLimits
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import write_own
from benchwright.environments.locks import locked


class UnpackedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: a hash of the names, sizes and times of its files."""

    format: int = 1
    name: str  # the archive's
    state: str
    size: int


class UnpackedArchives:
    """Unpacked archives below `folder`, the artifact cache. Constructing it touches nothing."""

    def __init__(self, folder: Path, limits: FetchLimits) -> None:
        self.folder = folder / "unpacked"
        self._locks = folder / "locks"
        self._limits = limits
        self._holds = Holds()

    def find(self, sha256: str) -> Path | None:
        """The folder, if nothing in it changed."""
        folder = self.folder / sha256
        record = self.record(sha256)
        if record is None:
            return None
        self._holds.hold(folder)
        if _state_of(folder) != record.state:
            self._holds.release(folder)
            return None
        return folder

    def make(self, archive: Path, sha256: str) -> Path:
        """The folder, unpacked if it is not there. Raises what `unpack` does, or OSError."""
        if (found := self.find(sha256)) is not None:
            return found
        for place in (self.folder, self._locks):
            place.mkdir(parents=True, exist_ok=True)
        with locked(str(self._locks / f"{sha256}.unpack.lock")):
            if (found := self.find(sha256)) is not None:
                return found
            folder, aside = self.folder / sha256, self.folder / f".{sha256}"
            shutil.rmtree(aside, ignore_errors=True)
            from benchwright.artifacts.unpack import unpack  # imports what only archives need

            size = unpack(archive, aside, self._limits).size
            if folder.exists():
                shutil.rmtree(folder)
            os.rename(aside, folder)
            record = UnpackedRecord(name=archive.name, state=_state_of(folder), size=size)
            write_own(self._record_path(sha256), msgspec.json.encode(record))
            self._holds.hold(folder)
            return folder

    def record(self, sha256: str) -> UnpackedRecord | None:
        try:
            return read_stored_json(self._record_path(sha256), UnpackedRecord)
        except (OSError, Unreadable):
            return None

    def names(self) -> list[str]:
        """The SHA-256 of each archive."""
        try:
            return sorted(name.removesuffix(".json") for name in os.listdir(self.folder) if name.endswith(".json"))
        except OSError:
            return []

    def remove(self, sha256: str) -> bool:
        """False if a process uses it."""
        with unused(self.folder / sha256) as free:
            if free:
                self._record_path(sha256).unlink(missing_ok=True)
                shutil.rmtree(self.folder / sha256, ignore_errors=True)
        return free

    def _record_path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.json"


def _state_of(folder: Path) -> str:
    """Much cheaper than reading all: nobody can set back the change time of a file."""
    found = hashlib.sha256()
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            status = os.lstat(path)
            facts = (
                os.path.relpath(path, folder),
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_ino,
            )
            found.update(repr(facts).encode())
    return found.hexdigest()

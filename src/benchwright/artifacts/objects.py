"""The files of the artifact cache, by content, and their records.

objects/<sha256>/<filename>   a file, read-only; a second filename is a second link to it. The folder is locked while in use
objects/<sha256>.json         its record, written last: a file without one does not count
md5/<md5>                     the SHA-256 of the file with that MD5
local/<hash of a path>.json   the sums of a file that is used where it lies
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from benchwright.artifacts.checksums import FileState, Sums, hash_file
from benchwright.artifacts.holds import Holds, unused
from benchwright.core.artifact import Artifact
from benchwright.core.stored_file import Unreadable, read_stored, read_stored_json
from benchwright.core.whole_file import write_own

FORMAT = 1
_ATTEMPTS = 3
ByteProgress = Callable[[int], None]


class ObjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of an object. `location` is where it came from, without secrets; empty: benchwright made it."""

    format: int = FORMAT
    sha256: str
    md5: str
    state: FileState
    filename: str
    location: str = ""
    fetched: float  # seconds since 1970


class LocalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a file outside of the cache."""

    format: int = FORMAT
    path: str
    state: FileState
    sums: Sums


class Objects:
    """Objects below `folder`. Constructing it touches nothing; objects it found are held while it lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "objects"
        self._by_md5 = folder / "md5"
        self._local = folder / "local"
        self._holds = Holds()

    def find(self, artifact: Artifact, filename: str, progress: ByteProgress | None) -> Path | None:
        """The file with these sums, by that name; None if there is none, or it was changed.

        One that may have been changed is read whole, unless `progress` is None.
        """
        sha256 = artifact.sha256 or self._sha256_of(artifact.md5)
        record = None if sha256 is None else self.record(sha256)
        if record is None or Sums(record.sha256, record.md5).mismatch(artifact):
            return None
        self._holds.hold(self.folder / record.sha256)
        path = self.folder / record.sha256 / record.filename
        if not self._is_intact(path, record, progress):
            self._holds.release(self.folder / record.sha256)
            return None
        with suppress(OSError):  # a cache that is read-only
            os.utime(self._record_path(record.sha256))  # when it was last used
        try:
            return path if filename == record.filename else self._also_called(path, filename)
        except OSError:
            return path  # a cache that is read-only, or a disk without links: it has the content, if not the name

    def add(self, written: Path, sums: Sums, filename: str, location: str) -> Path:
        """Moves a complete file, of which these are the sums, into the cache. Raises OSError."""
        assert sums.md5 is not None
        os.chmod(written, 0o444)
        with open(written, "rb") as file:
            os.fsync(file.fileno())
        path = self._moved(written, self.folder / sums.sha256, filename)
        self._by_md5.mkdir(parents=True, exist_ok=True)
        write_own(self._by_md5 / sums.md5, sums.sha256.encode())
        record = ObjectRecord(
            sha256=sums.sha256,
            md5=sums.md5,
            state=FileState.of(path),
            filename=filename,
            location=location,
            fetched=time.time(),
        )
        write_own(self._record_path(sums.sha256), msgspec.json.encode(record))
        return path

    def _moved(self, written: Path, folder: Path, filename: str) -> Path:
        for _ in range(_ATTEMPTS):
            folder.mkdir(parents=True, exist_ok=True)
            self._holds.hold(folder)
            try:
                os.replace(written, folder / filename)
                return folder / filename
            except FileNotFoundError:  # another process cleaned it away at this moment
                self._holds.release(folder)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))

    def record(self, sha256: str) -> ObjectRecord | None:
        """None if there is none, or it cannot be read."""
        try:
            found = read_stored_json(self._record_path(sha256), ObjectRecord)
        except (OSError, Unreadable):
            return None
        intact = found.format == FORMAT and found.sha256 == sha256 and "/" not in found.filename
        return found if intact and found.filename not in ("", ".", "..") else None

    def records(self) -> Iterator[ObjectRecord]:
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return
        for name in names:
            if name.endswith(".json") and (found := self.record(name.removesuffix(".json"))) is not None:
                yield found

    def without_record(self) -> list[Path]:
        """Folders that a killed process left."""
        try:
            folders = [Path(each.path) for each in os.scandir(self.folder) if each.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        return [folder for folder in folders if self.record(folder.name) is None]

    def last_used(self, sha256: str) -> float:
        """Seconds since 1970."""
        try:
            return os.stat(self._record_path(sha256)).st_mtime
        except OSError:
            return 0.0

    def problem(self, record: ObjectRecord, progress: ByteProgress) -> str | None:
        """Reads the whole file and returns the problem with it, if any. A damaged file is forgotten, and so fetched again."""
        path = self.folder / record.sha256 / record.filename
        try:
            state, sums = FileState.of(path), hash_file(path, progress=progress)
        except OSError as error:
            self._forget(record.sha256)
            return f"{path}: {error.strerror or error}"
        if sums.sha256 == record.sha256:
            if state != record.state and state.settled and FileState.of(path) == state:
                self._restate(record, state)
            return None
        self._forget(record.sha256)
        return f"{path} has changed: its sha256 is {sums.sha256}"

    def remove(self, sha256: str) -> bool:
        """False if a process uses it."""
        folder = self.folder / sha256
        with unused(folder) as free:
            if free:
                record = self.record(sha256)
                self._forget(sha256)
                if record is not None:
                    (self._by_md5 / record.md5).unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
        return free

    def local_sums(self, path: Path, *, md5: bool, progress: ByteProgress | None) -> Sums | None:
        """Of a file outside of the cache; one that did not change since is not read again. Raises OSError.

        None if it had to be read, and `progress` is None.
        """
        place = self._local / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:40]}.json"
        state = FileState.of(path)
        try:
            known = read_stored_json(place, LocalRecord)
            if known.format == FORMAT and known.state == state and (known.sums.md5 or not md5):
                return known.sums
        except (OSError, Unreadable):
            pass
        if progress is None:
            return None
        sums = hash_file(path, md5=md5, progress=progress)
        if FileState.of(path) == state and state.settled:
            with suppress(OSError):  # a cache that is read-only
                self._local.mkdir(parents=True, exist_ok=True)
                record = LocalRecord(path=os.fsdecode(path), state=state, sums=sums)
                write_own(place, msgspec.json.encode(record))
        return sums

    def link(self, path: Path, target: Path) -> None:
        """Gives a file of the cache another name. That changes its change time, so its record is written anew."""
        record = self.record(path.parent.name)
        known = record is not None and FileState.of(path) == record.state
        os.link(path, target)
        state = FileState.of(path)
        if record is not None and known and state.same_but_for_links(record.state):
            self._restate(record, state)

    def _is_intact(self, path: Path, record: ObjectRecord, progress: ByteProgress | None) -> bool:
        try:
            if FileState.of(path) == record.state:
                return True
            return progress is not None and self.problem(record, progress) is None
        except OSError:
            return False

    def _also_called(self, path: Path, filename: str) -> Path:
        other = path.with_name(filename)
        if os.path.lexists(other) and (other.is_symlink() or not os.path.samefile(path, other)):
            other.unlink()
        if not other.exists():
            with suppress(FileExistsError):  # another process was quicker
                self.link(path, other)
        return other

    def _restate(self, record: ObjectRecord, state: FileState) -> None:
        with suppress(OSError):
            record = msgspec.structs.replace(record, state=state)
            write_own(self._record_path(record.sha256), msgspec.json.encode(record))

    def _forget(self, sha256: str) -> None:
        self._record_path(sha256).unlink(missing_ok=True)

    def _record_path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.json"

    def _sha256_of(self, md5: str | None) -> str | None:
        try:
            found = None if md5 is None else read_stored(self._by_md5 / md5).decode("ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return found if found and len(found) == 64 and found.isalnum() else None

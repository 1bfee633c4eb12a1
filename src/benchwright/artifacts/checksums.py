"""SHA-256 and MD5 of files, and what a file looked like when they were taken."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from benchwright.core.artifact import Artifact
from benchwright.core.errors import InvalidInput
from benchwright.core.stored_file import open_stored

_BLOCK = 1 << 20
_SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system in use
_LENGTHS = {"md5": 32, "sha256": 64}


class Sums(msgspec.Struct, frozen=True):
    """`md5` is None where nobody asked for it."""

    sha256: str
    md5: str | None = None

    def mismatch(self, artifact: Artifact) -> tuple[str, str, str] | None:
        """The first sum that differs: its name, the expected and the actual one."""
        for name in ("sha256", "md5"):
            expected, actual = getattr(artifact, name), getattr(self, name)
            if expected is not None and expected.lower() != actual:
                return name, expected.lower(), actual or "unknown"
        return None


class FileState(msgspec.Struct, frozen=True):
    """A file's state when it was hashed. A file with the same state has not changed: nobody can set back its change time."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @staticmethod
    def of(path: str | os.PathLike[str]) -> FileState:
        status = os.stat(path)
        return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def same_but_for_links(self, other: FileState) -> bool:
        """Another link to a file changes its change time only."""
        return msgspec.structs.replace(self, ctime_ns=other.ctime_ns) == other

    @property
    def settled(self) -> bool:
        """Whether a change from now on will show: within one tick of the file system's clock it need not."""
        return time.time_ns() - self.ctime_ns > _SETTLED_NS


class Digest(Protocol):
    """The common interface of hashlib's objects."""

    def update(self, data: bytes | memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class Hashing:
    """Takes the sums of what passes by."""

    def __init__(self, *, md5: bool = True) -> None:
        self._sha256: Digest = hashlib.sha256()
        self._md5: Digest | None = hashlib.md5(usedforsecurity=False) if md5 else None

    def update(self, block: bytes | memoryview) -> None:
        self._sha256.update(block)
        if self._md5 is not None:
            self._md5.update(block)

    def sums(self) -> Sums:
        return Sums(self._sha256.hexdigest(), None if self._md5 is None else self._md5.hexdigest())


def hash_file(
    path: str | os.PathLike[str], *, md5: bool = False, progress: Callable[[int], None] = lambda done: None
) -> Sums:
    """The sums of a regular file; `progress` is called with the bytes done. Raises OSError."""
    hashing = Hashing(md5=md5)
    feed(hashing, path, progress)
    return hashing.sums()


def feed(hashing: Hashing, path: str | os.PathLike[str], progress: Callable[[int], None] = lambda done: None) -> int:
    """Adds the content of a regular file; returns its size. Raises OSError."""
    block = memoryview(bytearray(_BLOCK))
    done = 0
    with open_stored(path) as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while count := file.raw.readinto(block):  # type: ignore[attr-defined]  # open() returns a buffered reader
            hashing.update(block[:count])
            done += count
            progress(done)
    return done


def checked_sums(artifact: Artifact, where: str | None = None) -> Artifact:
    """`artifact`, with sums in lower case. InvalidInput if one is not a checksum."""
    found: dict[str, str | None] = {}
    for name, length in _LENGTHS.items():
        text = getattr(artifact, name)
        found[name] = text.strip().lower() if text else None
        if text and not re.fullmatch(rf"[0-9a-f]{{{length}}}", text.strip().lower()):
            what = f"{name} '{text[:80]}' of file '{artifact.key}' is not {length} hexadecimal digits"
            raise InvalidInput(what, where=where, remedy=f"write what {name}sum prints, or leave it out")
    return msgspec.structs.replace(artifact, **found)

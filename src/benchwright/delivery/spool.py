"""Messages on disk until a server took them: one file for each, oldest first.

A file is written before its message is sent and removed after the server took it: a crash in between sends it once more, and
never loses it. Whoever sends a file holds a lock on it, so that several processes can empty one spool together.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from benchwright.core.files.stored_file import Unreadable, read_stored_json
from benchwright.core.files.whole_file import unwritable, write_whole

T = TypeVar("T")
_ONLY_MINE = 0o600


class Waiting(msgspec.Struct, Generic[T], frozen=True):
    """A file of the spool, and what it holds."""

    path: Path
    content: T


class SpoolFolder(Generic[T]):
    """Holds contents of one type, only readable by its user. Making one touches nothing."""

    def __init__(self, folder: Path, type: type[T]) -> None:
        self.folder = folder
        self._type = type

    def keep(self, content: T) -> Path:
        """CannotWrite says why it could not be kept."""
        path = self.folder / f"{time.time_ns():020d}-{os.urandom(4).hex()}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, msgspec.json.encode(content), mode=_ONLY_MINE)
        except OSError as error:
            raise unwritable(path, error) from error
        return path

    def every(self) -> list[Waiting[T]]:
        """Oldest first. What cannot be read stays where it is; see `damaged`."""
        return [Waiting(path, content) for path in self._files() if (content := self._read(path)) is not None]

    def damaged(self) -> list[Path]:
        """Files that cannot be read, and are not being written or removed just now."""
        return [path for path in self._files() if self._read(path) is None and path.exists()]

    def is_ours(self, content: T) -> bool:
        """Whether this version can send it; for subclasses."""
        return True

    def _read(self, path: Path) -> T | None:
        try:
            content = read_stored_json(path, self._type)
        except (OSError, Unreadable):
            return None
        return content if self.is_ours(content) else None

    def _files(self) -> list[Path]:
        with suppress(OSError):
            return sorted(path for path in self.folder.glob("*.json") if not path.name.startswith("."))
        return []


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether this process alone may send the file; False if another one does, or has."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # some network file systems cannot lock: two processes may then send it twice, none loses it
        yield os.fstat(handle).st_nlink > 0
    finally:
        os.close(handle)

"""Messages on disk until a server took them: `<base>/spool`, one file for each request, oldest first.

A file is written before its messages are sent and removed after the server took them: a crash in between sends them once more,
and never loses them. Whoever sends a file holds a lock on it, so that several processes can empty one spool together.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.files.stored_file import Unreadable, read_stored_json
from benchwright.core.files.whole_file import unwritable, write_whole
from benchwright.exchange.faipep.remote.endpoint import Endpoint

FORMAT, VERSION = "benchwright-spool", 1
_ONLY_MINE = 0o600


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """One request that waits."""

    format: str = FORMAT
    version: int = VERSION
    url: str
    category: str
    run: str
    logs: list[dict[str, Any]]

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.url, self.category)


class Waiting(msgspec.Struct, frozen=True):
    """A file of the spool, and what it holds."""

    path: Path
    content: Spooled


class Spool:
    """Making one touches nothing."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "spool"

    def add(self, endpoint: Endpoint, run: str, logs: Sequence[dict[str, Any]]) -> Path:
        """CannotWrite says why it could not be kept."""
        path = self.folder / f"{time.time_ns():020d}-{os.urandom(4).hex()}.json"
        content = Spooled(url=endpoint.url, category=endpoint.category, run=run, logs=list(logs))
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, msgspec.json.encode(content), mode=_ONLY_MINE)
        except OSError as error:
            raise unwritable(path, error) from error
        return path

    def waiting(self, endpoint: Endpoint | None = None) -> list[Waiting]:
        """Oldest first; `endpoint`: only what is for it. What cannot be read stays where it is; see `damaged`."""
        found = [Waiting(path, content) for path in self._files() if (content := _read(path)) is not None]
        return [each for each in found if endpoint in (None, each.content.endpoint)]

    def damaged(self) -> list[Path]:
        """Files that cannot be read, and are not being written or removed just now."""
        return [path for path in self._files() if _read(path) is None and path.exists()]

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


def _read(path: Path) -> Spooled | None:
    try:
        content = read_stored_json(path, Spooled)
    except (OSError, Unreadable):
        return None
    return content if content.format == FORMAT and content.version == VERSION else None

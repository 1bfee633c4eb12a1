"""Files of a watch: the last commit that it finished, and a record of each.

The commit file is written whole, after a commit is finished; so a watch that was killed goes on at the commit that it was
at. The status file is the user's: a `0` in it asks the watch to stop.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.core.file_lock import try_lock
from benchwright.core.private_files import open_to_append
from benchwright.core.stored_file import Unreadable, decode_stored_json, read_stored
from benchwright.core.whole_file import unwritable, write_whole
from benchwright.regress.watch.records import CallMark, CommitRecord

_LONGEST = 1000  # characters; a file with more is no commit file or status file
_STOP = "0"


class CommitFile:
    """One hash: of the last commit that was finished."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str | None:
        """Its text; None if there is no such file, or nothing in it."""
        return _text_of(self.path, "--commit-file")

    def check(self) -> None:
        """InvalidInput or CannotWrite if it could not be written; better now than after hours of measuring."""
        folder = self.path.parent
        if self.path.is_dir():
            raise InvalidInput("is a folder", where=str(self.path), remedy="name a file")
        if not folder.is_dir():
            raise InvalidInput("its folder does not exist", where=str(self.path), remedy=f"mkdir -p {folder}")
        place = self.path if self.path.exists() else folder
        if not os.access(place, os.W_OK):
            raise unwritable(self.path, PermissionError(13, os.strerror(13)))

    def write(self, hash: str) -> None:
        try:
            write_whole(self.path, f"{hash}\n".encode())
        except OSError as error:
            raise unwritable(self.path, error) from None


class StatusFile:
    """Asks the watch to stop, as soon as it holds `0`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def asks_to_stop(self) -> bool:
        try:
            return _text_of(self.path, "--status-file") == _STOP
        except BenchwrightError:
            return False  # it says nothing that could be read, so not to stop either


def _text_of(path: Path, option: str) -> str | None:
    try:
        content = read_stored(path)[:_LONGEST]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}", where=option, remedy="name a file that can be read") from None
    return content.decode("utf-8", "replace").strip() or None


class Journal:
    """One line of JSON for each commit, appended as soon as it was finished or given up, and for each mark on what one was called
    for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, record: CommitRecord | CallMark) -> None:
        line = msgspec.json.encode(record) + b"\n"
        try:
            handle = open_to_append(str(self.path))
            try:
                os.write(handle, self._after_half_a_line() + line)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise unwritable(self.path, error) from None

    def read(self) -> list[CommitRecord]:
        """With the marks that came after them. Lines that cannot be read, such as one that a power cut left unfinished, are
        passed over."""
        try:
            content = read_stored(self.path)
        except OSError:
            return []
        found: list[CommitRecord] = []
        for line in content.splitlines():
            try:
                found.append(decode_stored_json(line, CommitRecord))
            except Unreadable:
                try:
                    found = [*map(decode_stored_json(line, CallMark).on, found)]
                except Unreadable:
                    continue
        return found

    def _after_half_a_line(self) -> bytes:
        with open(self.path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return b"\n" if size and file.read(1) != b"\n" else b""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two watches of the same would measure everything twice and disturb each other; CannotMeasure for the second."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        if not try_lock(handle):
            raise CannotMeasure(f"another benchwright is watching this already (it holds {folder / 'lock'})")
        yield
    finally:
        os.close(handle)

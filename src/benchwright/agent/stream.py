"""Appends events to a job's stream. Waits a while if the disk is full, and never fails the supervisor."""

from __future__ import annotations

import errno
import json
import os
import time

from benchwright.core.private_files import open_to_append

VERSION = 1
_MOST_PENDING = 2000
FULL = (errno.ENOSPC, errno.EDQUOT)
_RETRIED = (*FULL, errno.EAGAIN, errno.EINTR)


class StreamWriter:
    """One line per write, to a descriptor opened with O_APPEND: lines of other writers never mix with ours.

    A line that cannot be written is retried with the next one; the oldest are dropped when too many are pending. `trouble`
    says why lines are pending or were dropped; None if all went well.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.trouble: str | None = None
        self.is_full = False  # a write once failed for lack of disk space
        self.lost = 0
        self._written = self._own_bytes = self._others_bytes = 0
        self._pending: list[bytes] = []
        self._torn = False  # the last write was cut off in the middle of its line
        self._fd = -1
        try:
            self._fd = open_to_append(path)
        except OSError as error:
            self.trouble = _in_words(path, error)

    def append(self, event: str, **values: object) -> None:
        """Write one event, or keep it until there is room."""
        # The number distinguishes our lines from what a program may write here in our name.
        line = json.dumps({"event": event, "n": self._written, **values}, separators=(",", ":")) + "\n"
        self._written += 1
        self._pending.append(line.encode())
        self.flush()
        if len(self._pending) > _MOST_PENDING:
            self.lost += 1
            del self._pending[0]

    def others_wrote(self) -> bool:
        """Whether the file has grown by lines of others since this was last asked."""
        size = os.fstat(self._fd).st_size if self._fd >= 0 else 0
        grew, self._others_bytes = size - self._own_bytes > self._others_bytes, size - self._own_bytes
        return grew

    def flush(self, patience_s: float = 0.0) -> bool:
        """Write what is pending, trying for `patience_s`. True: nothing is pending."""
        deadline = time.monotonic() + patience_s
        while self._pending and self._fd >= 0:
            if self._write(self._pending[0]):
                del self._pending[0]
            elif time.monotonic() < deadline:
                time.sleep(0.05)
            else:
                break
        if not self._pending and not self.lost and self._fd >= 0:
            self.trouble = None
        return not self._pending

    def close(self) -> None:
        """Close the descriptor; pending lines are lost."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, line: bytes) -> bool:
        # A reader skips the torn line; without the newline it would lose the next one too.
        data = b"\n" + line if self._torn else line
        try:
            written = os.write(self._fd, data)
            self._own_bytes += written
        except OSError as error:
            self.trouble = _in_words(self.path, error)
            self.is_full = self.is_full or error.errno in FULL
            if error.errno not in _RETRIED:
                self.close()
            return False
        self._torn = written < len(data)
        return not self._torn


def has_event(path: str, name: str) -> bool:
    """Whether a program has written an event of that name to its stream."""
    try:
        with open(path, "rb") as file:
            return any(name.encode() in line and _name_of(line) == name for line in file)
    except OSError:
        return False


def _name_of(line: bytes) -> object:
    try:
        return json.loads(line).get("event")
    except (ValueError, AttributeError):  # torn, or no object
        return None


def _in_words(path: str, error: OSError) -> str:
    if error.errno in FULL:
        return f"the disk is full: {path} could not be written; free some space and run again"
    return f"{path} could not be written: {error.strerror or error}"

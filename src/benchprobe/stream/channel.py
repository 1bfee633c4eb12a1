"""Appends lines to a file or descriptor, whatever its state.

Never raises into the program. A line that cannot be written now is buffered; when the buffer is full, lines are dropped and
counted, and a `lost` event says so once writing works again.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections import deque
from typing import Callable, Deque, Optional

MAX_BUFFER_BYTES = 16 << 20
MAX_FILE_LINE_BYTES = 1 << 20
PIPE_LINE_BYTES = 4096  # PIPE_BUF: longer writes of several processes to one pipe would mix

_write_to = os.write  # as it was before the program could replace it


class Channel:
    """Appends lines to `target`, a path or `fd:N`. Used by one thread at a time."""

    def __init__(self, target: str, lost_event: Callable[[int], bytes]) -> None:
        self._path: Optional[str] = None
        self._fd: Optional[int] = None
        self._identity = (0, 0)  # of the file, by device and number
        self._is_pipe = False
        self._lost_event = lost_event
        self._waiting: Deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._mid_line = False  # a short write left half a line
        self._open(target)

    @property
    def max_line_bytes(self) -> int:
        return PIPE_LINE_BYTES if self._is_pipe else MAX_FILE_LINE_BYTES

    def put(self, line: bytes) -> None:
        """Writes `line`, which ends with a newline, now or later, or counts it as lost."""
        if not self._waiting and self._write(line):
            return
        if self._waiting_bytes + len(line) > MAX_BUFFER_BYTES:
            self._dropped += 1
            return
        self._waiting.append(line)
        self._waiting_bytes += len(line)

    def retry(self, patience_s: float = 0.0) -> None:
        """Writes buffered lines as far as possible; gives up after `patience_s` without progress."""
        give_up = time.monotonic() + patience_s
        while self._waiting:
            if self._write(self._waiting[0]):
                self._waiting_bytes -= len(self._waiting.popleft())
                give_up = time.monotonic() + patience_s
            elif time.monotonic() >= give_up:
                return
            else:
                time.sleep(0.01)
        if self._dropped and self._write(self._lost_event(self._dropped)):
            self._dropped = 0

    def forget(self) -> None:
        """Drops buffered lines: in a forked child they are the parent's to write."""
        self._waiting.clear()
        self._waiting_bytes = self._dropped = 0
        self._mid_line = False

    def _open(self, target: str) -> None:
        try:
            if target.startswith("fd:"):
                self._fd = int(target[3:])
            else:
                self._path = target
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK  # a named pipe may have no reader
                self._fd = os.open(target, flags, 0o644)
            status = os.fstat(self._fd)
        except (OSError, ValueError):
            self._fd = None
            return
        self._identity = (status.st_dev, status.st_ino)
        self._is_pipe = stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)

    def _usable(self) -> bool:
        """Whether the descriptor is still ours: a program may close it and reuse its number."""
        if self._fd is not None:
            try:
                status = os.fstat(self._fd)
                if (status.st_dev, status.st_ino) == self._identity:
                    return not self._is_pipe or self._has_room(self._fd)
            except OSError:
                pass
            self._fd = None
        if self._path is not None:
            self._open(self._path)
        return self._fd is not None

    @staticmethod
    def _has_room(fd: int) -> bool:
        """Whether a pipe takes a line now. Polled, not made non-blocking: others may share its flags."""
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        return bool(poll.poll(0))

    def _write(self, line: bytes) -> bool:
        """True once the whole line is out. A truncated line is repeated on a new line."""
        if not self._usable():
            return False
        assert self._fd is not None
        data = b"\n" + line if self._mid_line else line
        try:
            written = _write_to(self._fd, data)
        except (OSError, ValueError):
            return False
        if written >= len(data) - 1:  # if only the newline is missing, repeating the line would duplicate it
            self._mid_line = written < len(data)
            return True
        self._mid_line = self._mid_line or written > 0
        return False

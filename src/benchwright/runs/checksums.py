"""checksums.sha256: the digest of each stream when its launch had been recorded, in the format of `sha256sum`.

A stream that was changed, cut short or replaced later gets a note; a launch that was killed has no checksum.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from benchwright.core.private_files import file_mode
from benchwright.core.stored_file import read_stored
from benchwright.core.whole_file import write_own
from benchwright.record import is_complete, stream_checksum

CHECKSUMS = "checksums.sha256"
_LINE = re.compile(rb"([0-9a-f]{64})  (.+)\n")


class Checksums:
    """The checksums of one run folder, by the name of the stream's file. Without a readable file there are none."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CHECKSUMS
        self._sums: dict[str, str] = {}
        with suppress(OSError):  # made by an earlier version, or nothing has ended yet
            found = _LINE.findall(read_stored(self._path))
            self._sums = {os.fsdecode(name): checksum.decode() for checksum, name in found}

    def of(self, stream: str) -> str | None:
        return self._sums.get(os.path.basename(stream))

    def add(self, stream: str) -> None:
        """Once its launch has ended; what is known already is never replaced."""
        name = os.path.basename(stream)
        if name in self._sums or "\n" in name or not is_complete(stream):
            return
        with suppress(OSError):  # without a checksum it is read like a stream of an earlier version
            checksum = stream_checksum(stream)
            _append(self._path, f"{checksum}  {name}\n")
            self._sums[name] = checksum

    def forget(self, stream: str) -> None:
        """Its launch is made again. Raises OSError."""
        if self._sums.pop(os.path.basename(stream), None) is not None:
            write_own(self._path, os.fsencode("".join(f"{sum_}  {name}\n" for name, sum_ in self._sums.items())))


def _append(path: Path, line: str) -> None:
    """Not through a link, nor to a pipe, which somebody may have put there."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(path, flags, file_mode(os.fspath(path)))
    try:
        os.write(handle, os.fsencode(line))
    finally:
        os.close(handle)

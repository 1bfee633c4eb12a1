"""What becomes of a log when its program has ended: compressed, or removed. Its end is kept for the reader's eye."""

from __future__ import annotations

import os
import zlib

from benchwright.core.files.whole_file import written_whole

_BLOCK_BYTES = 1024 * 1024
_GZIP_FORMAT = 31  # zlib's number for "deflate inside a gzip file"


class LogFacts:
    """What was seen while the log was compressed."""

    __slots__ = ("bytes", "lines")

    def __init__(self) -> None:
        self.bytes = 0
        self.lines = 0


def read_end(path: str, most: int = 65536) -> bytes:
    """The last bytes of a file; empty if it cannot be read."""
    try:
        with open(path, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - most))
            return log.read(most)
    except OSError:
        return b""


def compress(path: str) -> LogFacts:
    """Turn `path` into `path`.gz: written aside, renamed, then the raw log is removed. Raises OSError and keeps it."""
    facts = LogFacts()
    squeeze = zlib.compressobj(1, zlib.DEFLATED, _GZIP_FORMAT)
    with (
        open(path, "rb", buffering=0) as log,
        written_whole(f"{path}.gz", sync=False) as aside,
        open(aside, "wb") as packed,
    ):
        while block := log.read(_BLOCK_BYTES):
            facts.bytes += len(block)
            facts.lines += block.count(b"\n")
            packed.write(squeeze.compress(block))
        packed.write(squeeze.flush())
    remove(path)
    return facts


def remove(path: str) -> None:
    """Remove a file if it is there."""
    try:
        os.unlink(path)
    except OSError:
        pass

"""Cuts a growing log into blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator

from benchwright.agent.extractors.base import Block

LINE_LIMIT_BYTES = 1 << 20  # of an unfinished line; a longer one is cut into pieces
SLICE_BYTES = 1 << 18  # scanned at a time: stays in the cache of the processor for all patterns


class LineCutter:
    """Holds back the unfinished line, at most `line_limit_bytes` of it.

    A line ends with `\\n` or `\\r\\n`; a lone `\\r` (a progress bar) ends a part that is matched by itself. How the
    log is split over calls does not change the result.
    """

    def __init__(self, line_limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self.long_lines = 0
        self._limit = line_limit_bytes
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._in_long_line = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Pieces that consist of whole lines, their ends included, or are a part of one that is too long."""
        step = min(SLICE_BYTES, self._limit)
        if len(data) <= step:
            yield from self._feed(data)
            return
        for start in range(0, len(data), step):
            yield from self._feed(data[start : start + step])

    def close(self) -> bytes:
        """The last line, which had no end; empty if there is none."""
        return self._take_pending()

    def _feed(self, data: bytes) -> Iterator[bytes]:
        if self._pending and self._pending[-1].endswith(b"\r"):
            data = self._take_pending() + data  # now it shows whether \r or \r\n
        cut = _end_of_lines(data)
        first = _first_line_bytes(data, cut)
        if self._pending_bytes + first > self._limit:
            first += self._pending_bytes
            yield from self._feed_long(self._take_pending() + data, first)
            return
        if cut:
            self._in_long_line = False
            yield self._take_pending() + data[:cut] if self._pending else data[:cut]
            data = data[cut:]
        if data:
            self._pending.append(data)
            self._pending_bytes += len(data)

    def _feed_long(self, data: bytes, first: int) -> Iterator[bytes]:
        """The first line of `data` has `first` bytes, beyond the limit: cut it there, and go on with the rest."""
        start = 0
        while first - start > self._limit:
            end = _character_start(data, start + self._limit)
            self.long_lines += not self._in_long_line
            self._in_long_line = True
            yield data[start:end]
            start = end
        yield from self._feed(data[start:])

    def _take_pending(self) -> bytes:
        data = b"".join(self._pending)
        self._pending = []
        self._pending_bytes = 0
        return data


def _end_of_lines(data: bytes) -> int:
    """Where the unfinished line begins. A `\\r` at the very end may become `\\r\\n`, so it ends nothing yet."""
    newline = data.rfind(b"\n")
    return max(newline, data.rfind(b"\r", newline + 1, max(len(data) - 1, 0))) + 1


def _first_line_bytes(data: bytes, cut: int) -> int:
    """Length of the first line of data, without its end; `cut` is 0 if no line ends in it."""
    if not cut:
        return len(data) - data.endswith(b"\r")
    newline = data.find(b"\n")
    carriage = data.find(b"\r", 0, newline if newline >= 0 else cut)
    return carriage if carriage >= 0 else newline


def _character_start(data: bytes, position: int) -> int:
    """`position`, or up to three bytes before it, so that no UTF-8 character is cut in two."""
    for start in range(position, position - 4, -1):
        if data[start] & 0xC0 != 0x80:
            return start
    return position


def make_block(piece: bytes, first_line: int) -> Block:
    """The lines of a piece, the first of which has that number."""
    for end in (b"\r\n", b"\n", b"\r"):
        if piece.endswith(end):
            return Block(piece[: -len(end)], first_line)
    return Block(piece, first_line)

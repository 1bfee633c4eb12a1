"""Copies lines of the log that a kind reads itself, such as an observer's records, into the job's stream while it grows."""

from __future__ import annotations

from benchwright.agent.output.log_tail import BLOCK_BYTES, LogReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.agent.stream import StreamWriter

LONGEST_LINE = 1 << 24  # bytes; a record with a million values still fits
_MOST_AT_ONCE = 1 << 16  # bytes of lines in one event


class PrintedTail:
    """Every line that contains `wanted` (all lines if it is empty), with its number, unchanged.

    A line without its end, or longer than `LONGEST_LINE`, is copied as far as it goes and marked as cut.
    """

    def __init__(self, reader: LogReader, wanted: str, stream: StreamWriter) -> None:
        self._reader = reader
        self._wanted = wanted.encode()
        self._stream = stream
        self._begun: list[bytes] = []  # pieces of the unfinished line
        self._begun_bytes = 0
        self._ended = 0  # lines so far
        self._too_long = False  # the beginning of the unfinished line was copied; its rest is left out

    def advance(self, now_ns: int) -> bool:
        """Copy from one block; False when that was all there is."""
        data = self._reader.read(BLOCK_BYTES)
        if data:
            self._take(data, now_ns)
        return len(data) == BLOCK_BYTES

    def finish(self, now_ns: int) -> None:
        """Copy the last line, if it has no end."""
        if self._begun and not self._too_long:
            self._copy([(self._ended + 1, b"".join(self._begun))], now_ns, cut=True)
        self._begun = []

    def _take(self, data: bytes, now_ns: int) -> None:
        first, *rest = data.split(b"\n")
        self._begun.append(first)
        self._begun_bytes += len(first)
        if self._begun_bytes > LONGEST_LINE and not self._too_long:
            self._copy([(self._ended + 1, b"".join(self._begun)[:LONGEST_LINE])], now_ns, cut=True)
            self._too_long = True
        if self._too_long:
            self._begun = [b""]
        if not rest:
            return
        *whole, begun = rest
        lines = [] if self._too_long else [(self._ended + 1, b"".join(self._begun))]
        lines += [(self._ended + number, line) for number, line in enumerate(whole, start=2)]
        self._ended += 1 + len(whole)
        self._begun, self._begun_bytes, self._too_long = [begun], len(begun), False
        self._copy(lines, now_ns)

    def _copy(self, lines: list[tuple[int, bytes]], now_ns: int, *, cut: bool = False) -> None:
        part: list[tuple[int, str]] = []
        size = 0
        for number, raw in lines:
            if self._wanted not in raw or not raw.strip():
                continue
            part.append((number, raw.decode("utf-8", "replace").removesuffix("\r")))
            size += len(raw)
            if size > _MOST_AT_ONCE:
                self._stream.append("printed", t=now_ns, lines=part, cut=cut)
                part, size = [], 0
        if part:
            self._stream.append("printed", t=now_ns, lines=part, cut=cut)

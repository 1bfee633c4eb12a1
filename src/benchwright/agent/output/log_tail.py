"""Follows a growing log: scans it for metrics, and echoes it. Memory stays constant."""

from __future__ import annotations

import codecs
import os

from benchwright.agent.message_pipe import MessageWriter, fits
from benchwright.core.hidden_lines import HiddenLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from benchwright.agent.extractors.scanner import LogScanner
    from benchwright.agent.stream import StreamWriter

BLOCK_BYTES = 256 * 1024
_ECHO_BYTES = 2000


class LogReader:
    """Reads a file from `offset` on, with its own descriptor."""

    def __init__(self, path: str, offset: int) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._limit: int | None = None
        self.offset = offset

    def read(self, most: int) -> bytes:
        """The next bytes; empty when there are none yet."""
        if self._limit is not None:
            most = max(0, min(most, self._limit - self.offset))
        data = os.pread(self._fd, most, self.offset)
        self.offset += len(data)
        return data

    def end_here(self) -> None:
        """Reads nothing that is written from now on."""
        self._limit = max(self.offset, os.fstat(self._fd).st_size)

    @property
    def late_bytes(self) -> int:
        """How much was written after that."""
        return 0 if self._limit is None else max(0, os.fstat(self._fd).st_size - self._limit)

    def close(self) -> None:
        os.close(self._fd)


class MetricTail:
    """Feeds the log to the scanner and turns what it finds into `metric` events."""

    def __init__(self, reader: LogReader, scanner: LogScanner, stream: StreamWriter) -> None:
        self._reader = reader
        self._scanner = scanner
        self._stream = stream
        self.newest: dict[str, float] = {}

    def advance(self, now_ns: int) -> bool:
        """Scan one block; False when that was all there is."""
        data = self._reader.read(BLOCK_BYTES)
        if data:
            self._record(self._scanner.feed(data), now_ns)
        return len(data) == BLOCK_BYTES

    def finish(self, now_ns: int) -> dict[str, Any]:
        """Scan the last line, even without a newline; returns the scanner's summary."""
        self._record(self._scanner.close() or [], now_ns)
        return dict(self._scanner.summary())

    def _record(self, found: list[Any], now_ns: int) -> None:
        together: dict[str, tuple[list[float], list[int]]] = {}
        for item in found:
            values, lines = together.setdefault(item.name, ([], []))
            values += item.values
            lines += item.lines
        for name, (values, lines) in together.items():
            if values:
                self._stream.append("metric", t=now_ns, name=name, values=values, lines=lines)
                self.newest[name] = values[-1]


class Echo:
    """Forwards the log as text, no faster than the main process reads it: the log itself is the buffer.

    Data lines hidden in it are left out.
    """

    def __init__(self, reader: LogReader, speaker: MessageWriter, job_id: str) -> None:
        self._reader = reader
        self._speaker = speaker
        self._job_id = job_id
        self._hidden = HiddenLines()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def advance(self) -> bool:
        """Forward some of the new output; False when that was all, or the main process is behind."""
        if self._speaker.backed_up:
            return False
        data = self._reader.read(_ECHO_BYTES)
        if data:
            self._say(self._decoder.decode(self._hidden.feed(data)[0]))
        return len(data) == _ECHO_BYTES

    def finish(self) -> None:
        """Forward what was held back."""
        self._say(self._decoder.decode(self._hidden.close()))

    def _say(self, text: str) -> None:
        values = {"job": self._job_id, "text": text}
        if not text:
            return
        if fits("output", values):
            self._speaker.say("output", **values)
        else:  # control characters take six bytes each
            middle = len(text) // 2
            self._say(text[:middle])
            self._say(text[middle:])

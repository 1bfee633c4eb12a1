"""A job's log: written by the program, read while it runs, compressed or discarded at the end."""

from __future__ import annotations

import os
import time
import zlib

from benchwright.agent.output.log_tail import BLOCK_BYTES, Echo, LogReader, MetricTail
from benchwright.core.private_files import not_through_a_link, open_to_append
from benchwright.core.whole_file import written_whole

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchwright.agent.message_pipe import MessageWriter
    from benchwright.agent.stream import StreamWriter
    from benchwright.core.job import Job
    from benchwright.core.metric import MetricSpec


# Copies lines of the log that a kind reads itself, such as an observer's records, into the job's stream while it grows.


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


_SCAN_INTERVAL_S = 0.25
_ECHO_INTERVAL_S = 0.05
_MOST_BLOCKS = 4  # read in a row before deadlines and signals are checked again
_ECHO_PATIENCE_S = 10.0
_BLOCK_BYTES = 1024 * 1024
_GZIP_FORMAT = 31  # zlib's number for "deflate inside a gzip file"


class JobLog:
    """Raises OSError if the log cannot be opened. `fd` is what the program writes to."""

    def __init__(self, job: Job, stream: StreamWriter, speaker: MessageWriter) -> None:
        self._job = job
        self._stream = stream
        self._speaker = speaker
        self.fd = open_to_append(job.log)
        self._offset = os.fstat(self.fd).st_size
        self._required: list[MetricSpec] = []
        self._readers: list[LogReader] = []  # of what counts as the program's result
        self._metrics = self._open_metrics() if job.metrics else None
        self._printed = None if job.printed is None else PrintedTail(self._open_reader(), job.printed, stream)
        self._echo = Echo(LogReader(job.log, self._offset), speaker, job.id) if job.echo else None
        self.has_more = False  # there is more to read than was read at once

    def _open_metrics(self) -> MetricTail:
        import msgspec  # costly to import: only for jobs with metrics

        from benchwright.agent.extractors.scanner import LogScanner
        from benchwright.core.metric import MetricSpec

        metrics = msgspec.convert(self._job.metrics, tuple[MetricSpec, ...])
        self._required = [metric for metric in metrics if metric.required]
        return MetricTail(self._open_reader(), LogScanner(metrics), self._stream)

    def _open_reader(self) -> LogReader:
        self._readers.append(LogReader(self._job.log, self._offset))
        return self._readers[-1]

    @property
    def interval_s(self) -> float | None:
        """How often to look for new output; None: not at all."""
        if self._echo is not None:
            return _ECHO_INTERVAL_S
        return _SCAN_INTERVAL_S if self._readers else None

    @property
    def newest(self) -> dict[str, float]:
        """The last value found of each metric."""
        return self._metrics.newest if self._metrics is not None else {}

    def advance(self, now_ns: int) -> None:
        """Read some of what is new."""
        more = False
        for _ in range(_MOST_BLOCKS):
            scanned = self._scan(now_ns)
            echoed = self._echo is not None and self._echo.advance()
            more = scanned or echoed
            if not more:
                break
        self.has_more = more

    def _scan(self, now_ns: int) -> bool:
        """Read one block for metrics and one for lines to copy; False when that was all there is."""
        measured = self._metrics is not None and self._metrics.advance(now_ns)
        copied = self._printed is not None and self._printed.advance(now_ns)
        return measured or copied

    def program_ended(self) -> None:
        """Anything printed later is not the program's result."""
        for reader in self._readers:
            reader.end_here()

    @property
    def late_bytes(self) -> int:
        """How much was printed after that."""
        return max((reader.late_bytes for reader in self._readers), default=0)

    def read_end(self) -> bytes:
        """The last of the output."""
        return _last_bytes(self._job.log)

    def finish(self, is_cut_short: Callable[[], bool], *, succeeded: bool) -> None:
        """Read the rest, write the `extraction` event, then compress the log, or discard it if that was asked for."""
        os.close(self.fd)
        self._drain(is_cut_short)
        summary = self._metrics.finish(time.perf_counter_ns()) if self._metrics is not None else None
        if self._printed is not None:
            self._printed.finish(time.perf_counter_ns())
        if summary is not None and succeeded:
            succeeded = all(summary["metrics"][metric.name]["matches"] for metric in self._required)
        facts = self._put_away(succeeded)
        self._stream.append("extraction", **(summary or {"metrics": {}, "lines": facts.lines, "bytes": facts.bytes}))

    def _drain(self, is_cut_short: Callable[[], bool]) -> None:
        patient_until = time.monotonic() + _ECHO_PATIENCE_S
        while not is_cut_short() and self._scan(time.perf_counter_ns()):
            pass
        while self._echo is not None and not self._speaker.main_is_gone and not is_cut_short():
            if self._echo.advance():
                patient_until = time.monotonic() + _ECHO_PATIENCE_S
            elif not self._speaker.backed_up or time.monotonic() > patient_until:
                break
            else:
                self._speaker.flush(0.1)
        if self._echo is not None:
            self._echo.finish()

    def _put_away(self, succeeded: bool) -> LogSize:
        if self._job.discard_log and succeeded:
            _remove(self._job.log)
            return LogSize()
        try:
            return _compress(self._job.log)
        except OSError as error:
            text = f"the log was not compressed: {error.strerror or error}; it stays as {self._job.log}"
            self._stream.append("message", t=time.perf_counter_ns(), severity="warning", source="agent", text=text)
            return LogSize()


class LogSize:
    """Size of a log, counted while it was compressed."""

    __slots__ = ("bytes", "lines")

    def __init__(self) -> None:
        self.bytes = 0
        self.lines = 0


def _last_bytes(path: str, most: int = 65536) -> bytes:
    """The last bytes of a file; empty if it cannot be read."""
    try:
        with open(path, "rb", opener=not_through_a_link) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - most))
            return log.read(most)
    except OSError:
        return b""


def _compress(path: str) -> LogSize:
    """Turn `path` into `path`.gz: written aside, renamed, then the raw log is removed. Raises OSError and keeps it."""
    facts = LogSize()
    squeeze = zlib.compressobj(1, zlib.DEFLATED, _GZIP_FORMAT)
    with (
        open(path, "rb", buffering=0, opener=not_through_a_link) as log,
        written_whole(f"{path}.gz", sync=False) as aside,
        open(aside, "wb") as packed,
    ):
        while block := log.read(_BLOCK_BYTES):
            facts.bytes += len(block)
            facts.lines += block.count(b"\n")
            packed.write(squeeze.compress(block))
        packed.write(squeeze.flush())
    _remove(path)
    return facts


def _remove(path: str) -> None:
    """Remove a file if it exists."""
    try:
        os.unlink(path)
    except OSError:
        pass

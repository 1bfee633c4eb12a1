"""Copies what a program reports through another tool's instrument into the job's stream while it runs.

The instrument writes lines to the descriptor $DATA_FD: to a file of ours, or hidden in the log if the program's own children do not
have that descriptor. Each line goes into the stream unchanged, with the time at which it was seen. A killed program may leave
half a line, which the recorder can handle.
"""

from __future__ import annotations

import os

from benchwright.agent.output.log_tail import BLOCK_BYTES, LogReader
from benchwright.agent.supervise.program_environment import IN_LOG
from benchwright.core.hidden_lines import HiddenLines
from benchwright.core.private_files import open_to_append

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchwright.agent.stream import StreamWriter
    from benchwright.core.job import Job

INTERVAL_S = 0.1  # the precision of a line's time
_MOST_BLOCKS = 4  # read in a row before deadlines and signals are checked again
_LONGEST_LINE = 1 << 18
_MOST_AT_ONCE = 1 << 16  # bytes of lines in one event


class DataTail:
    """Raises OSError if the file cannot be opened. `fd` is what the program finds as descriptor 3, or None."""

    def __init__(self, job: Job, environment: Mapping[str, str], stream: StreamWriter, dialect: str) -> None:
        self._stream = stream
        from benchwright.core.stream_dialect import STREAM_DIALECTS  # most jobs have none, and start without it

        self._name, self._dialect = dialect, STREAM_DIALECTS.load(dialect)()
        self._path = job.data_file
        self.fd: int | None = None
        self._file: LogReader | None = None
        self._log: LogReader | None = None
        self._hidden = HiddenLines()
        self._begun = b""  # the unfinished line
        self._too_long = False  # its beginning was taken; the rest is left out
        self.has_more = False
        self.stop_asked = False  # the program was measured enough and wants to be ended
        self.newest: dict[str, float] = {}
        if job.data_file is not None:
            self.fd = open_to_append(job.data_file)
            self._file = LogReader(job.data_file, os.fstat(self.fd).st_size)
        if environment.get("DATA_FD") in IN_LOG:
            self._log = LogReader(job.log, os.stat(job.log).st_size)

    def started(self) -> None:
        """The program has its own descriptor now."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def program_ended(self) -> None:
        """Anything later is not the program's result."""
        for reader in (self._file, self._log):
            if reader is not None:
                reader.end_here()

    @property
    def late_bytes(self) -> int:
        """How much came after that."""
        return max((reader.late_bytes for reader in (self._file, self._log) if reader is not None), default=0)

    def advance(self, now_ns: int) -> None:
        """Copy some of what is new."""
        more = False
        for _ in range(_MOST_BLOCKS):
            more = self._advance_file(now_ns) | self._advance_log(now_ns)
            if not more:
                break
        self.has_more = more

    def finish(self, now_ns: int) -> None:
        """Copy the rest, including half a line. The file is removed: the stream has it all."""
        self.started()
        self.has_more = True
        while self.has_more:
            self.advance(now_ns)
        self._append([self._begun] if self._begun else [], now_ns)
        for reader in (self._file, self._log):
            if reader is not None:
                reader.close()
        if self._path is not None and not self._stream.trouble:
            try:
                os.unlink(self._path)
            except OSError:
                pass

    def _advance_file(self, now_ns: int) -> bool:
        data = self._file.read(BLOCK_BYTES) if self._file is not None else b""
        if data:
            *lines, self._begun = (self._begun + data).split(b"\n")
            if self._too_long and lines:
                del lines[0]
                self._too_long = False
            if self._too_long or len(self._begun) > _LONGEST_LINE:
                lines += [] if self._too_long else [self._begun]
                self._begun = b""
                self._too_long = True
            self._append(lines, now_ns)
        return len(data) == BLOCK_BYTES

    def _advance_log(self, now_ns: int) -> bool:
        data = self._log.read(BLOCK_BYTES) if self._log is not None else b""
        if data:
            self._append(self._hidden.feed(data)[1], now_ns)
        return len(data) == BLOCK_BYTES

    def _append(self, lines: list[bytes], now_ns: int) -> None:
        part: list[str] = []
        size = 0
        for raw in lines:
            if not raw.strip():
                continue
            line = raw[:_LONGEST_LINE].decode("utf-8", "replace")
            self._notice(line)
            part.append(line)
            size += len(line)
            if size > _MOST_AT_ONCE:
                self._stream.append("reported", t=now_ns, dialect=self._name, lines=part)
                part, size = [], 0
        if part:
            self._stream.append("reported", t=now_ns, dialect=self._name, lines=part)

    def _notice(self, line: str) -> None:
        """Notes what the supervisor itself needs from a line."""
        if (seen := self._dialect.glance(line)) is not None:
            self.stop_asked = self.stop_asked or seen.stop_asked
            self.newest.update(seen.newest)


def open_data_tail(job: Job, environment: Mapping[str, str], stream: StreamWriter) -> DataTail | None:
    """None if the program is not expected to write such lines."""
    if job.dialect is None or (job.data_file is None and job.env.get("DATA_FD") not in IN_LOG):
        return None
    return DataTail(job, environment, stream, job.dialect)

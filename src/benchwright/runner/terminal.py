"""Progress on stderr: a panel on a terminal, else plain lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TextIO

from benchwright.report.text.one_line import columns_of, one_line
from benchwright.runner.progress import Progress

# A terminal that cuts a line that is too long cannot be driven out of step by one of unexpected width.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_GREEN, _RED, _FAINT, _END = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"


def open_progress(
    *, quiet: bool = False, verbose: bool = False, jobs: bool = True, stream: TextIO | None = None
) -> Progress:
    """A context manager. `quiet`: only problems are shown. `jobs`: a line for each running job."""
    return Progress(surface_of(stream or sys.stderr), quiet=quiet, verbose=verbose, jobs=jobs)


def surface_of(stream: TextIO | None) -> PlainLines:
    """A panel if it is a terminal that people look at. None: it was closed."""
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb" or os.environ.get("CI"):
        return PlainLines(stream)
    return TerminalPanel(stream)


class PlainLines:
    """For a pipe, a file or a log of CI: no control characters. If nobody reads it any more, the work goes on without it."""

    live = False
    size = (80, 24)

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._inside_line = False  # what a program printed last did not end its line

    def draw(self, lines: Sequence[str]) -> None:
        raise NotImplementedError("plain lines cannot be redrawn")

    def say(self, text: str) -> None:
        self._write(("\n" if self._inside_line else "") + text + "\n")
        self._inside_line = False

    def echo(self, text: str) -> None:
        self._write(text)
        self._inside_line = not text.endswith("\n")

    def close(self) -> None:
        if self._inside_line:
            self._write("\n")
            self._inside_line = False

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: it was closed
            self._stream = None


class TerminalPanel(PlainLines):
    """Lines that are drawn again in their place; what is said goes above them and stays.

    Every change is one write that leaves the cursor at the end of the panel, so there is nothing to flicker and
    nothing to repair if the process is killed.
    """

    live = True

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._colours = not os.environ.get("NO_COLOR")
        self._drawn: list[str] = []
        self._drawn_columns = 0

    @property
    def size(self) -> tuple[int, int]:  # type: ignore[override]
        """One column is left free, since some terminals wrap when the last one is written; and a line for what comes above."""
        columns, lines = self._terminal_size()
        return max(20, columns - 1), max(2, min(lines - 2, 20))

    def draw(self, lines: Sequence[str]) -> None:
        new = [one_line(line) for line in lines]
        columns = self._terminal_size()[0]
        if self._inside_line or (new == self._drawn and columns == self._drawn_columns):
            return
        body = "\r\n".join(f"{self._coloured(line)}\x1b[K" for line in new)
        self._write(f"{_NO_WRAP}{self._to_the_top(columns)}{body}\x1b[J{_WRAP}")
        self._drawn, self._drawn_columns = new, columns

    def say(self, text: str) -> None:
        drawn = self._drawn
        self._erase()
        super().say(self._coloured(text))
        self.draw(drawn)

    def echo(self, text: str) -> None:
        self._erase()
        super().echo(text)

    def close(self) -> None:
        self._erase()
        super().close()

    def _erase(self) -> None:
        if self._drawn:
            self._write(self._to_the_top(self._terminal_size()[0]) + "\x1b[J")
            self._drawn = []

    def _to_the_top(self, columns: int) -> str:
        """A terminal that was made narrower has wrapped what was drawn."""
        if not self._drawn:
            return "\r"
        rows = sum(max(1, -(-columns_of(line) // max(1, columns))) for line in self._drawn)
        return f"\x1b[{rows - 1}A\r" if rows > 1 else "\r"

    def _terminal_size(self) -> os.terminal_size:
        try:
            return os.get_terminal_size(self._stream.fileno() if self._stream is not None else -1)
        except (OSError, ValueError):
            return os.terminal_size((80, 24))

    def _coloured(self, line: str) -> str:
        if not self._colours:
            return line
        line = re.sub(r"━+", rf"{_GREEN}\g<0>{_END}", line)
        line = re.sub(r"─+", rf"{_FAINT}\g<0>{_END}", line)
        return re.sub(r"\bFAILED\b", f"{_RED}FAILED{_END}", line)

"""A program on a pseudo-terminal, and what its screen shows."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class TerminalProgram:
    """stdin, stdout and stderr are a terminal; `screen` is pyte's, which shows what was written so far."""

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], columns: int = 80, lines: int = 24
    ) -> None:
        import pyte

        self.screen: Any = pyte.HistoryScreen(columns, lines, history=500)
        self._feed = pyte.ByteStream(self.screen)
        self.raw = b""
        self._main, self._side = pty.openpty()
        self.resize(columns, lines)
        self.settings = termios.tcgetattr(self._side)
        self.process = subprocess.Popen(
            list(argv),
            stdin=self._side,
            stdout=self._side,
            stderr=self._side,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)
        os.close(self._side)

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._main, keys)

    def lines(self) -> list[str]:
        shown = [line.rstrip() for line in self.screen.display]
        return [line for line in shown if line]

    def until(self, condition: Callable[[list[str]], bool], seconds: float = 60.0) -> list[str]:
        """Reads on until the screen is so; AssertionError if it never is."""
        limit = time.monotonic() + seconds
        while not condition(self.lines()):
            assert time.monotonic() < limit, self.lines()
            self._read(0.1)
        return self.lines()

    def end(self, seconds: float = 60.0) -> int:
        """Reads until the program has ended; its exit code."""
        limit = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < limit, self.lines()
            self._read(0.1)
        self._read(0.1)
        return self.process.returncode

    def settings_now(self) -> list[Any]:
        return termios.tcgetattr(self._side)

    def _read(self, seconds: float) -> None:
        while select.select([self._main], [], [], seconds)[0]:
            data = os.read(self._main, 65536)
            self.raw += data
            self._feed.feed(data)
            seconds = 0.0

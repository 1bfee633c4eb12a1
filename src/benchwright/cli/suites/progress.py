"""Progress of install, prepare and pin on stderr: a line per step; on a terminal also the current ones."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TextIO

from benchwright.core.numbers.quantities import format_duration
from benchwright.executors.observer import Observer

_REDRAW_S = 0.5
_REMIND_S = 15.0  # without a terminal, a line now and then shows that it still works


class PhaseProgress(Observer):
    """Thread-safe. If stderr is closed, the work goes on without it."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.stream: TextIO | None = None if quiet else stream or sys.stderr
        self.live = self.stream is not None and self.stream.isatty()
        self.steps: dict[str, tuple[str, float]] = {}  # what → its step, and since when
        self.lock = threading.Lock()
        self.drawn = False
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> PhaseProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread is not None:
            self.thread.join()
        with self.lock:
            self._erase()

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        with self.lock:
            self.steps[name] = (what, time.monotonic())
            if self.stream is not None and self.thread is None:
                self.thread = threading.Thread(target=self._remind, daemon=True)
                self.thread.start()
        self.say(f"{name}: {what}")

    def on_step_done(self, name: str, how: str = "") -> None:
        with self.lock:
            self.steps.pop(name, None)
        if how:
            self.say(f"{name}: {how}")

    def on_note(self, text: str) -> None:
        self.say(f"note: {text}")

    def say(self, text: str) -> None:
        with self.lock:
            self._erase()
            self._write(text + "\n")

    def _remind(self) -> None:
        said = time.monotonic()
        while not self.over.wait(_REDRAW_S):
            now = time.monotonic()
            with self.lock:
                words = [f"{name}: {what}, {format_duration(now - t)}" for name, (what, t) in self.steps.items()]
                if self.live:
                    width = shutil.get_terminal_size().columns
                    self._write("\r\x1b[K" + "; ".join(words)[: width - 1])
                    self.drawn = True
                elif words and now - said > _REMIND_S:
                    self._write("; ".join(words) + "\n")
                    said = now

    def _erase(self) -> None:
        if self.drawn:
            self._write("\r\x1b[K")
            self.drawn = False

    def _write(self, text: str) -> None:
        if self.stream is None:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # ValueError: it was closed
            self.stream = None

    def on_output(self, job_id: str, text: str) -> None:
        with self.lock:
            self._erase()
            self._write(text)

"""Says on stderr what a command is doing, if that takes a while."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Self

import click

from benchwright import runner
from benchwright.cli.answer import in_json

if TYPE_CHECKING:
    from benchwright.runner.progress import Progress

SLOW_S = 1.3  # and as long again until the first drawing


class Working:
    """A context manager. A command that is quick pays for a thread, and for nothing else; one with `--json` stays silent."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        if not in_json():
            threading.Thread(target=self._watch, name="working", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with self._lock:
            if self._progress is not None:
                self._progress.__exit__()

    def now(self, what: str) -> None:
        """It does something else from here on."""
        with self._lock:
            self._what = what
            if self._progress is not None:
                self._progress.begin(what)

    def echo(self, text: str, *, err: bool = False) -> None:
        """A line of the command's own."""
        with self._lock, self._progress.aside() if self._progress is not None else nullcontext():
            click.echo(text, err=err)

    def _watch(self) -> None:
        if self._over.wait(SLOW_S):
            return

        with self._lock:
            if not self._over.is_set():
                self._progress = runner.terminal.open_progress()
                self._progress.begin(self._what)

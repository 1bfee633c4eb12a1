"""run.json while a run is measured: written now and then, so that it is seen as it grows and costs little however long it gets."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchwright.app.after_run import written_body
from benchwright.core.run import Run
from benchwright.executors.observer import Observer
from benchwright.runs.run_folder import DiskTrouble, RunFolder, RunState

_EVERY_S = 2.0  # at most that often,
_SHARE = 0.02  # and for at most this share of the time: the file of a thousand models takes seconds


class RunWriter:
    """That of one run."""

    def __init__(self, folder: RunFolder, observer: Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._observer = observer
        self._clock = clock
        self._next = 0.0
        self._in_trouble = False

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next

    def write(self, assembled: Callable[[], Run], state: RunState) -> Run:
        """Returns what it wrote. A full disk is said once and costs nothing else: the streams are the truth."""
        began = self._clock()
        run = assembled()
        try:
            self._folder.write_run(written_body(run), state=state)
        except DiskTrouble as error:
            if not self._in_trouble:
                self._observer.on_trouble(str(error))
            self._in_trouble = True
        ended = self._clock()
        self._next = ended + max(_EVERY_S, (ended - began) / _SHARE)
        return run

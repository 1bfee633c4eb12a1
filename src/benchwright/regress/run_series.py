"""The same run again and again, at an interval, with the clock and the stop rules of a watch.

Each run is a process of benchwright: nothing that one has read, cached or lost reaches the next, and after an upgrade the next one
is the new version.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from benchwright.core.errors import Interrupted, InvalidInput
from benchwright.core.quantities import format_duration
from benchwright.executors.interruption import finishes_on_sigterm, stops_on_signals
from benchwright.regress.watch.clock import PatientClock, at_intervals

_INTERRUPTED = 128 + signal.SIGINT


class RunSeries:
    """`words`: those of `benchwright run`, for each run. `say` is handed what happens between runs."""

    def __init__(self, words: Sequence[str], interval_s: float, say: Callable[[str], None]) -> None:
        self._argv = [sys.executable, "-P", "-m", "benchwright", "run", *words]
        self._interval_s = interval_s
        self._say = say
        self._codes: list[int] = []

    def run(self) -> int:
        """Until SIGTERM, which lets the run in hand finish; a second one, or Ctrl-C, stops that run too.

        Returns the exit code of the latest run that failed, else 0; that of the first run if its input was wrong. Interrupted
        after Ctrl-C.
        """
        with finishes_on_sigterm() as asked:
            clock = PatientClock(asked)
            try:
                at_intervals(lambda: self._once(asked.set), clock, self._interval_s, self._on_waiting)
            except KeyboardInterrupt:
                raise Interrupted("the series was interrupted") from None
        return next((code for code in reversed(self._codes) if code), 0)

    def _once(self, end: Callable[[], None]) -> None:
        code = self._exit_code()
        self._codes.append(code)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        if code == InvalidInput.exit_code and len(self._codes) == 1:
            end()  # the options would be wrong the next time too
        elif code < 0:
            self._say(f"the run was killed by signal {-code}; the series goes on")
        elif code:
            self._say(f"the run failed (exit code {code}); the series goes on")

    def _exit_code(self) -> int:
        """Of one run. It has a process group, so that a terminal's Ctrl-C reaches it once: from here."""
        started: list[subprocess.Popen[bytes]] = []

        def stop() -> None:
            for process in started:
                process.send_signal(signal.SIGINT)

        with stops_on_signals(stop) as stopped:
            started.append(subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, process_group=0))
            if stopped():
                stop()
            code = started[0].wait()
        return _INTERRUPTED if stopped() else code

    def _on_waiting(self, seconds: float) -> None:
        self._say(f"{len(self._codes)} made; the next run begins in {format_duration(seconds)}")

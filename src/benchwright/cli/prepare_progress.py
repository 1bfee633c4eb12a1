"""Progress of `prepare`: that of any phase, and what the scripts print if it is asked for."""

from __future__ import annotations

from benchwright.cli.phase_progress import PhaseProgress
from benchwright.core.numbers.quantities import format_duration
from benchwright.kinds.suite.setup.prepare import PrepareObserver, Preparing


class PrepareProgress(PhaseProgress, PrepareObserver):
    def __enter__(self) -> PrepareProgress:
        return self

    def on_prepared(self, preparing: Preparing) -> None:
        self.finish(preparing.name)
        if preparing.status in ("prepared", "failed"):
            self.say(f"{preparing.name}: {preparing.status} after {format_duration(preparing.seconds)}")

    def on_output(self, job_id: str, text: str) -> None:
        with self.lock:
            self._erase()
            self._write(text)

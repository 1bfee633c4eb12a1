"""Holds a job back while the loop of another is measured: whatever it starts up, builds or checks could disturb that.

The measured process creates `quiet-<place>` in the folder of its turn, and removes it after its loops; its supervisor removes
it if the process ends before. Each of the others' supervisors looks for it, and stops and continues its own processes.
"""

from __future__ import annotations

import os
import signal
import time

from benchwright.agent.processes.process_tree import signal_descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.agent.supervise.program import Program
    from benchwright.core.job import JobTurn

LOOK_S = 0.02
QUIET, WAITING = "quiet-", "waiting-"


class Holding:
    """Of one job; of one without a turn, nothing is held back."""

    def __init__(self, turn: JobTurn | None, program: Program) -> None:
        self._turn = turn
        self._program = program
        self._looked_ns = time.perf_counter_ns()
        self._to_repeat = False
        self.is_held = False
        self.apart_ns = 0  # for how long it was held back, or waited for its turn

    @property
    def next_ns(self) -> int | None:
        """When to look again."""
        return None if self._turn is None else self._looked_ns + int(LOOK_S * 1e9)

    def look(self) -> None:
        if self._turn is None:
            return
        names = _names(self._turn.folder)
        now_ns = time.perf_counter_ns()
        if self.is_held or f"{WAITING}{self._turn.place}" in names:
            self.apart_ns += now_ns - self._looked_ns
        self._looked_ns = now_ns
        own = f"{QUIET}{self._turn.place}"
        if any(name.startswith(QUIET) and name != own and self._holder_lives(name) for name in names):
            self._hold()
        else:
            self.release()

    def release(self) -> None:
        """Let it go on."""
        if self.is_held:
            signal_descendants(os.getpid(), signal.SIGCONT)
            self.is_held = self._program.is_held = False

    def _hold(self) -> None:
        """The second time for what a process started before it was stopped."""
        if not self.is_held or self._to_repeat:
            self._to_repeat = not self.is_held
            self.is_held = self._program.is_held = True
            signal_descendants(os.getpid(), signal.SIGSTOP)

    def _holder_lives(self, name: str) -> bool:
        """A process that was killed together with its supervisor holds nobody back."""
        assert self._turn is not None
        try:
            with open(os.path.join(self._turn.folder, name)) as file:
                os.kill(int(file.read()), 0)
        except PermissionError:
            return True
        except (OSError, ValueError):  # it has just removed the file, or not written it yet
            return False
        return True


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []

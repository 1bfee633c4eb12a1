"""Two programs at once, one of them always stopped: both see the same machine, however its speed wanders.

For figures that a stop does not touch: CPU time, and medians of many short calls.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time

TURN_S = 0.25


def in_turns(processes: tuple[subprocess.Popen[str], subprocess.Popen[str]]) -> None:
    """Returns when both have ended; they are not reaped yet, so that what they used can be asked for."""
    number = 0
    while running := [process for process in processes if not _has_ended(process)]:
        for place, process in enumerate(running):
            its_turn = len(running) == 1 or place == number % 2
            process.send_signal(signal.SIGCONT if its_turn else signal.SIGSTOP)
        time.sleep(TURN_S)
        number += 1


def _has_ended(process: subprocess.Popen[str]) -> bool:
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return found is not None

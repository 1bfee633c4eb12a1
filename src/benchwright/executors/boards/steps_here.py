"""Steps of a board's job that run on this machine: data is made and looked at here, only the program needs the board."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable

from benchwright.executors.boards.base import BoardExit

_LOOK_S = 0.25


def run_here(
    script: str, cwd: str, timeout_s: float | None, output: Callable[[bytes], None], stopped: Callable[[], bool]
) -> BoardExit | None:
    """Runs a script for `sh` to its end; None if it succeeded. What it prints goes to `output`."""
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return BoardExit(detail=f"a step on this machine could not be started: {error.strerror}")
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    timed_out = was_stopped = False
    assert process.stdout is not None
    with process.stdout as printed:
        while True:
            if select.select([printed], [], [], _LOOK_S)[0]:
                data = os.read(printed.fileno(), 1 << 16)
                if not data:
                    break
                output(data)
            timed_out = deadline is not None and time.monotonic() > deadline
            was_stopped = stopped()
            if timed_out or was_stopped:
                os.killpg(process.pid, signal.SIGKILL)  # its own group: nothing else is in it
                break
    code = process.wait()
    if timed_out or was_stopped:
        return BoardExit(timed_out=timed_out, stopped=was_stopped, detail="in a step on this machine")
    return None if code == 0 else BoardExit(exit_code=code, detail=f"a step on this machine failed (exit code {code})")

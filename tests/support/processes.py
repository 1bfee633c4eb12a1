"""Finding the processes a test's run has started, by the marker the agent puts into their environment."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil


def carrying(text: str) -> list[int]:
    """Living processes whose environment holds `text`; zombies do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and text.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def kill(*processes: psutil.Process | int) -> None:
    """With SIGKILL, each that has not gone by itself meanwhile."""
    for each in processes:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if isinstance(each, int):
                os.kill(each, signal.SIGKILL)
            elif each.pid > 1:
                each.kill()


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether `condition` came true in time. The limit is generous: on two busy cores a program starts slowly."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def quickest(measure: Callable[[], float], enough: float, tries: int = 4) -> float:
    """The shortest of up to `tries` durations, or the first below `enough`.

    A busy machine lengthens some of them, a fault lengthens all.
    """
    shortest = measure()
    for _ in range(tries - 1):
        if shortest < enough:
            break
        shortest = min(shortest, measure())
    return shortest

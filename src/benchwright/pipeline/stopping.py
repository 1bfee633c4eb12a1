"""Ctrl-C and SIGTERM, for phases that have something to end in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stops_on_signals(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM call `stop`; yields a function that tells whether that happened."""
    asked = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        asked.set()
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    listened = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # started by nohup
        listened.remove(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in listened}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

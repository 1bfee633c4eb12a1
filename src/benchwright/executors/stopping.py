"""Ctrl-C and SIGTERM, for phases that must end in an orderly way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stops_on_signals(stop: Callable[[], None], *, second_ends: bool = False) -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM call `stop`; yields a function that says whether that happened.

    `second_ends`: a second Ctrl-C raises KeyboardInterrupt at once.
    """
    asked = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if second_ends and asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    listened = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # started by nohup: survive the terminal
        listened.remove(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in listened}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

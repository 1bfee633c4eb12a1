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
    if isinstance(signal.getsignal(signal.SIGTERM), _Later):
        listened.remove(signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # started by nohup: survive the terminal
        listened.remove(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in listened}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Later:
    """Remembers a signal; a second one is as Ctrl-C."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.asked.is_set():
            signal.raise_signal(signal.SIGINT)
        self.asked.set()


@contextmanager
def finishes_on_sigterm() -> Iterator[threading.Event]:
    """SIGTERM sets the event that is yielded, and stops no phase inside: what was begun is finished. A second one stops at
    once, as Ctrl-C does."""
    handler = _Later()
    if threading.current_thread() is not threading.main_thread():
        yield handler.asked
        return
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield handler.asked
    finally:
        signal.signal(signal.SIGTERM, before)

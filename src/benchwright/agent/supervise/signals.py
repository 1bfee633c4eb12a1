"""Signals as something a loop can wait for."""

from __future__ import annotations

import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType


class SignalQueue:
    """Counts signals; `wait` returns as soon as one comes."""

    def __init__(self, listened: Iterable[int], ignored: Iterable[int] = ()) -> None:
        self.count = dict.fromkeys(listened, 0)
        self.on_signal: Callable[[int], None] | None = None  # called at once, even in the middle of other work
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._poll = select.poll()
        self._poll.register(self._read_fd, select.POLLIN)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        for number in self.count:
            signal.signal(number, self._note)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    def watch(self, fd: int) -> None:
        """`wait` also returns when `fd` is readable."""
        self._poll.register(fd, select.POLLIN)

    def unwatch(self, fd: int) -> None:
        self._poll.unregister(fd)

    def wait(self, timeout_s: float | None) -> list[int]:
        """Until a signal, a watched descriptor is readable, or the timeout; returns the readable descriptors."""
        timeout_ms = None if timeout_s is None else max(0.0, timeout_s * 1000)
        ready = [fd for fd, _ in self._poll.poll(timeout_ms)]
        if self._read_fd in ready:
            ready.remove(self._read_fd)
            try:
                os.read(self._read_fd, 4096)
            except BlockingIOError:
                pass
        return ready

    def close(self) -> None:
        """Stop listening."""
        signal.set_wakeup_fd(-1)
        os.close(self._read_fd)
        os.close(self._write_fd)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count[number] += 1
        if self.on_signal is not None:
            self.on_signal(number)

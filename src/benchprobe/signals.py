"""Signals as something to wait for, together with the end of a child."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any, Callable, Iterable, List, Optional


class Signals:
    """Keeps the signals it listens to in `seen`; a child's end wakes it up, too. To be used in the main thread."""

    def __init__(self, listened: Iterable[int]) -> None:
        # One that is ignored stays so: nohup meant it.
        self._listened = [number for number in listened if signal.getsignal(number) is not signal.SIG_IGN]
        self.seen: List[int] = []
        self.on_signal: Callable[[int], None] = lambda number: None

    def __enter__(self) -> Signals:
        self._read_fd, self._write_fd = os.pipe()
        for fd in (self._read_fd, self._write_fd):
            os.set_blocking(fd, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._note) for number in self._listened}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._read_fd)
        os.close(self._write_fd)

    def wait(self, timeout_s: Optional[float]) -> None:
        """Until a signal, the end of a child, or the time."""
        ready, _, _ = select.select([self._read_fd], [], [], timeout_s)
        if ready:
            try:
                os.read(self._read_fd, 4096)
            except BlockingIOError:
                pass

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Looks at `condition` after everything that happens; whether it came true in time."""
        limit = time.monotonic() + timeout_s
        while not condition():
            left_s = limit - time.monotonic()
            if left_s <= 0:
                return False
            self.wait(left_s)
        return True

    def _note(self, number: int, frame: Any) -> None:
        self.seen.append(number)
        self.on_signal(number)

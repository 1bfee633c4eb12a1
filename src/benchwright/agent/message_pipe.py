"""Messages to the main process, over a pipe that several supervisors share."""

from __future__ import annotations

import json
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Writes up to PIPE_BUF (4096) are atomic, so lines of different supervisors do not mix.
LONGEST_LINE = 4000


class MessageWriter:
    """Writes lines without ever blocking: what does not fit into the pipe waits here."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending: list[bytes] = []
        self.main_is_gone = False
        os.set_blocking(fd, False)

    @property
    def backed_up(self) -> bool:
        """Whether the main process is behind in reading."""
        return bool(self._pending)

    def say(self, what: str, **values: object) -> None:
        """Send one message; it must fit into a line (see `fits`)."""
        self._pending.append(encode(what, values))
        self.flush()

    def flush(self, patience_s: float = 0.0) -> bool:
        """Send what is pending, trying for `patience_s`. True: nothing is pending."""
        deadline = time.monotonic() + patience_s
        while self._pending and not self.main_is_gone:
            try:
                os.write(self._fd, self._pending[0])
                del self._pending[0]
            except BlockingIOError:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                poll.poll(min(left_s, 0.1) * 1000)
            except OSError:
                self.main_is_gone = True
        return not self._pending


def encode(what: str, values: dict[str, object]) -> bytes:
    """One message as a line. NaN and infinity, such as a diverged loss, are written as Python does."""
    return json.dumps({"say": what, **values}, separators=(",", ":")).encode() + b"\n"


def fits(what: str, values: dict[str, Any]) -> bool:
    """Whether the message is short enough to be sent atomically."""
    return len(encode(what, values)) <= LONGEST_LINE

"""The answer of a server that did not take a message, and the limit on how long it may take to answer."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Protocol, Self


class NotTaken(Exception):
    """The server did not take the message. `again`: trying once more may help; `after_s`: not sooner than that."""

    def __init__(self, what: str, *, again: bool, after_s: float = 0.0, alone: bool = False) -> None:
        super().__init__(what)
        self.again = again
        self.after_s = after_s
        self.alone = alone  # it is about this message; others may be taken


class _Connection(Protocol):
    @property
    def sock(self) -> socket.socket | None: ...


class ConversationLimit:
    """Ends a conversation that takes too long as a whole, even if the server says a word from time to time."""

    def __init__(self, most_s: float) -> None:
        self._connections: list[_Connection] = []
        self._timer = threading.Timer(most_s, self._end)
        self._timer.daemon = True
        self.is_over = False

    def watch(self, connection: _Connection) -> None:
        self._connections.append(connection)

    def _end(self) -> None:
        self.is_over = True
        for connection in self._connections:
            if connection.sock is not None:
                with suppress(OSError):  # it was closed just now
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._timer.cancel()

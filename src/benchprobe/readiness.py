"""Whether a server answers: at a TCP port, or with a page that is fine."""

from __future__ import annotations

import re
import socket
from typing import Protocol

EXAMPLES = "write tcp:HOST:PORT or http://HOST:PORT/PATH"


class Ready(Protocol):
    """A place to look at. Its text is what the user wrote."""

    def answers(self, timeout_s: float) -> bool:
        """One look, that takes no longer than about `timeout_s`."""


class TcpPort:
    """Ready when somebody takes connections there."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def __str__(self) -> str:
        host, port = self._address
        return f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"

    def answers(self, timeout_s: float) -> bool:
        try:
            socket.create_connection(self._address, timeout_s).close()
            return True
        except OSError:
            return False


class HttpPage:
    """Ready when it is there: status 200, or another of success."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __str__(self) -> str:
        return self._url

    def answers(self, timeout_s: float) -> bool:
        from http.client import HTTPException
        from urllib.request import ProxyHandler, build_opener

        opener = build_opener(ProxyHandler({}))  # a proxy has no business between a server and its benchmark
        try:
            with opener.open(self._url, timeout=timeout_s) as answer:
                return bool(200 <= answer.status < 300)
        except (OSError, HTTPException):
            return False


def parse_ready(text: str) -> Ready:
    """`tcp:HOST:PORT`, `http://…` or `https://…`; ValueError says what is wrong."""
    if re.match(r"https?://[^/\s]", text):
        return HttpPage(text)
    match = re.fullmatch(r"tcp:(?://)?(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})", text)
    if match is None or not 0 < int(match[3]) < 65536:
        raise ValueError(EXAMPLES)
    return TcpPort(match[1] or match[2], int(match[3]))

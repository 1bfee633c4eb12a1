"""Whether a server is up: it accepts TCP connections, or serves a page."""

from __future__ import annotations

import re
import socket
from typing import NamedTuple

EXAMPLES = "write tcp:HOST:PORT or http://HOST:PORT/PATH"


class Ready(NamedTuple):
    """A TCP port or, if `url` is set, a web page that must answer with a status of success."""

    host: str = ""
    port: int = 0
    url: str = ""

    def __str__(self) -> str:
        return self.url or (f"tcp:[{self.host}]:{self.port}" if ":" in self.host else f"tcp:{self.host}:{self.port}")

    def answers(self, timeout_s: float) -> bool:
        """One look, which takes no longer than about `timeout_s`."""
        from http.client import HTTPException
        from urllib.request import ProxyHandler, build_opener

        try:
            if not self.url:
                socket.create_connection((self.host, self.port), timeout_s).close()
                return True
            opener = build_opener(ProxyHandler({}))  # never through a proxy
            with opener.open(self.url, timeout=timeout_s) as answer:
                return bool(200 <= answer.status < 300)
        except (OSError, HTTPException):
            return False


def parse_ready(text: str) -> Ready:
    """`tcp:HOST:PORT`, `http://…` or `https://…`; ValueError says what is wrong."""
    if re.match(r"https?://[^/\s]", text):
        return Ready(url=text)
    match = re.fullmatch(r"tcp:(?://)?(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})", text)
    if match is None or not 0 < int(match[3]) < 65536:
        raise ValueError(EXAMPLES)
    return Ready(match[1] or match[2], int(match[3]))

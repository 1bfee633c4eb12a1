"""A web server of our own that misbehaves as told, and counts what it was asked for."""

from __future__ import annotations

import os
import re
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

Answer = Callable[["Asked"], None]


class Seen(NamedTuple):
    """One request."""

    path: str
    range: str | None
    if_range: str | None
    if_none_match: str | None
    host: str | None


class Asked(BaseHTTPRequestHandler):
    """One request, for an answer to write to."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        asked = self.headers
        seen = Seen(self.path, asked.get("Range"), asked.get("If-Range"), asked.get("If-None-Match"), asked.get("Host"))
        self.server.seen.append(seen)
        self.close_connection = True
        answers = self.server.answers.get(self.path, [missing])
        with self.server.turn:
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        try:
            answer(self)
        except OSError:
            pass  # the client went away

    def head(self, status: int, **headers: str | int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that went away

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.answers: dict[str, list[Answer]] = {}
        self.seen: list[Seen] = []
        self.turn = threading.Lock()


class BadServer:
    """A context manager. `certificate`: a file with certificate and key, for https. `serve(path, first, second, …)`: the last answer is given from then on."""

    def __init__(self, certificate: Path | None = None) -> None:
        self._certificate = certificate

    def __enter__(self) -> Self:
        os.environ.setdefault("no_proxy", "127.0.0.1")  # it is never behind one
        self._server = _Server()
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self, path: str, *answers: Answer) -> str:
        self._server.answers[path] = list(answers)
        scheme = "http" if self._certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.server_port}{path}"

    @property
    def seen(self) -> list[Seen]:
        return self._server.seen

    @property
    def port(self) -> int:
        return self._server.server_port


def missing(asked: Asked) -> None:
    asked.head(404, Content_Length=0)


def status(code: int, **headers: str | int) -> Answer:
    return lambda asked: asked.head(code, Content_Length=0, **headers)


def redirect(target: str) -> Answer:
    return lambda asked: asked.head(302, Location=target, Content_Length=0)


def whole(content: bytes, **headers: str | int) -> Answer:
    """Ignores ranges."""

    def answer(asked: Asked) -> None:
        asked.head(200, Content_Length=len(content), **headers)
        asked.wfile.write(content)

    return answer


def honest(
    content: bytes,
    etag: str | None = '"one"',
    *,
    obeys_if_range: bool = True,
    pause_s: float = 0.0,
    last_after: Callable[[], bool] = lambda: True,
) -> Answer:
    """As a good server does: ranges, If-Range and If-None-Match.

    `pause_s`: after each 64 KiB; `last_after`: the last of them is sent only when this is true.
    """

    def answer(asked: Asked) -> None:
        tags = {} if etag is None else {"ETag": etag}
        if etag is not None and asked.headers.get("If-None-Match") == etag:
            return asked.head(304, **tags)
        found = re.fullmatch(r"bytes=(\d+)-", asked.headers.get("Range", ""))
        start = int(found[1]) if found is not None else 0
        if obeys_if_range and asked.headers.get("If-Range", etag) != etag:
            start = 0
        if start >= len(content) > 0:
            return asked.head(416, Content_Range=f"bytes */{len(content)}", Content_Length=0)
        rest = content[start:]
        if start:
            span = f"bytes {start}-{len(content) - 1}/{len(content)}"
            asked.head(206, Content_Length=len(rest), Content_Range=span, **tags)
        else:
            asked.head(200, Content_Length=len(rest), Accept_Ranges="bytes", **tags)
        for at in range(0, len(rest), 1 << 16):
            while at + (1 << 16) >= len(rest) and not last_after():
                time.sleep(0.01)
            asked.wfile.write(rest[at : at + (1 << 16)])
            if pause_s:
                time.sleep(pause_s)
        return None

    return answer


def cut(content: bytes, after: int, etag: str | None = '"one"') -> Answer:
    """Promises all of it, and hangs up after so many bytes."""

    def answer(asked: Asked) -> None:
        asked.head(200, Content_Length=len(content), **({} if etag is None else {"ETag": etag}))
        asked.wfile.write(content[:after])

    return answer


def chunked_cut(content: bytes) -> Answer:
    """Says no length, and hangs up in the middle of a chunk."""

    def answer(asked: Asked) -> None:
        asked.head(200, Transfer_Encoding="chunked")
        asked.wfile.write(b"%x\r\n" % (2 * len(content)) + content)

    return answer


def chunked(content: bytes) -> Answer:
    """Says no length, and is complete."""

    def answer(asked: Asked) -> None:
        asked.head(200, Transfer_Encoding="chunked")
        asked.wfile.write(b"%x\r\n" % len(content) + content + b"\r\n0\r\n\r\n")

    return answer


def endless(asked: Asked) -> None:
    asked.head(200)
    while True:
        asked.wfile.write(bytes(1 << 16))


def silent(asked: Asked) -> None:
    """Accepts the request, and never answers."""
    time.sleep(20)


def slow_headers(asked: Asked) -> None:
    """One more header, byte by byte, for ever."""
    asked.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(200):
        asked.wfile.write(b"X")
        time.sleep(0.05)


def trickling(content: bytes, pause_s: float = 0.05) -> Answer:
    """A byte now and then: no read times out, and it never ends."""

    def answer(asked: Asked) -> None:
        asked.head(200, Content_Length=len(content), ETag='"one"')
        for at in range(400):
            asked.wfile.write(content[at : at + 1])
            time.sleep(pause_s)

    return answer

"""A server for remote reports that behaves as told: takes them, is slow, answers errors or a wrong count, cuts the connection."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["ReportHandler", int], None]  # the handler, and how many messages came


class ReportServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ReportHandler)
        self.behaviours: list[Answer] = []  # one for each request in turn; then all are taken
        self.requests: list[dict[str, Any]] = []  # bodies, whatever was answered
        self.taken: list[dict[str, Any]] = []  # decoded messages of requests that were answered well
        self.guard = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/logs"


class ReportHandler(BaseHTTPRequestHandler):
    server: ReportServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        logs = json.loads(body["logs"])
        with self.server.guard:
            self.server.requests.append(body)
            behave = self.server.behaviours.pop(0) if self.server.behaviours else take
            if behave is take or behave is slow:  # before the client can know of it
                self.server.taken += [json.loads(log["message"]) for log in logs]
        behave(self, len(logs))

    def answer(self, status: int, body: object, **headers: str) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def take(handler: ReportHandler, count: int) -> None:
    handler.answer(200, {"count": count})


def slow(handler: ReportHandler, count: int) -> None:
    time.sleep(0.3)
    handler.answer(200, {"count": count})


def hang(handler: ReportHandler, count: int) -> None:
    time.sleep(3)


def fail(handler: ReportHandler, count: int) -> None:
    handler.answer(500, {"error": "broken"})


def refuse(handler: ReportHandler, count: int) -> None:
    handler.answer(403, {"error": "bad token", "token": handler.server.requests[-1]["access_token"]})


def dislike(handler: ReportHandler, count: int) -> None:
    handler.answer(400, {"error": "bad message"})


def miscount(handler: ReportHandler, count: int) -> None:
    handler.answer(200, {"count": count - 1})


def babble(handler: ReportHandler, count: int) -> None:
    handler.answer(200, "thanks")


def redirect(handler: ReportHandler, count: int) -> None:
    handler.answer(307, {}, Location=f"{handler.server.url}/elsewhere")


def cut(handler: ReportHandler, count: int) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n{")
    handler.wfile.flush()
    handler.connection.close()


def drip(handler: ReportHandler, count: int) -> None:
    """A word from time to time, and never an answer."""
    with suppress(OSError):
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
        for number in range(100):
            handler.wfile.write(f"X-{number}: y\r\n".encode())
            time.sleep(0.1)


def vanish(handler: ReportHandler, count: int) -> None:
    handler.close_connection = True


@contextmanager
def report_server(*behaviours: Answer) -> Iterator[ReportServer]:
    with ReportServer() as server:
        server.behaviours = list(behaviours)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()

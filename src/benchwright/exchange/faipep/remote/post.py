"""One request to a remote reporter's server, and whether it took all of it."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from benchwright.exchange.faipep.remote.endpoint import AccessToken, Endpoint
from benchwright.version import __version__

_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_ANSWER = 1 << 16
_LONGEST_WAIT_S = 60.0


class NotTaken(Exception):
    """The server did not take the messages. `again`: trying once more may help; `after_s`: not sooner than that."""

    def __init__(self, what: str, *, again: bool, after_s: float = 0.0, alone: bool = False) -> None:
        super().__init__(what)
        self.again = again
        self.after_s = after_s
        self.alone = alone  # it is about these messages; others may be taken


def post(endpoint: Endpoint, token: AccessToken, logs: Sequence[object], *, timeout_s: float) -> None:
    """Sends the messages; NotTaken unless the server says that it took every one. No redirect is followed."""
    body = json.dumps({"access_token": token.reveal(), "logs": json.dumps(logs)}).encode()
    headers = {"Content-Type": "application/json", "User-Agent": f"benchwright/{__version__}"}
    request = urllib.request.Request(endpoint.url, data=body, headers=headers)  # noqa: S310  # http or https: endpoint_of
    wait = _Wait(timeout_s)
    try:
        with wait, _opener(wait).open(request, timeout=timeout_s) as answer:
            text = _read(answer, wait)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unreachable(TimeoutError() if wait.is_over else error) from None
    _check_count(text, len(logs))


class _Wait:
    """Ends a request that takes too long as a whole, even if its server says a word from time to time."""

    def __init__(self, most_s: float) -> None:
        self._connections: list[http.client.HTTPConnection] = []
        self._timer = threading.Timer(most_s, self._end)
        self._timer.daemon = True
        self.is_over = False

    def watch(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        self._connections.append(connection)
        return connection

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


def _check_count(text: bytes, wanted: int) -> None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise NotTaken("its answer is not JSON", again=False) from None
    count = answer.get("count") if isinstance(answer, dict) else None
    if isinstance(count, bool) or not isinstance(count, int):
        raise NotTaken('its answer has no "count"', again=False)
    if count != wanted:
        raise NotTaken(f"it took {count} of {wanted} messages", again=False, alone=True)


def _read(answer: http.client.HTTPResponse, wait: _Wait) -> bytes:
    """The whole answer, unless that takes too long or it is none of ours."""
    found = b""
    while len(found) < _LONGEST_ANSWER:
        part = answer.read1(_LONGEST_ANSWER)
        if wait.is_over:
            raise TimeoutError
        if not part:
            if answer.length:
                raise http.client.IncompleteRead(found)
            return found
        found += part
    raise ValueError("its answer is too long")


def _refused(error: urllib.error.HTTPError) -> NotTaken:
    """Its body is not shown: some servers repeat the request, token and all."""
    what = f"it answers {error.code} {error.reason or ''}".rstrip()[:120]
    if error.code in (401, 403):
        what += "; check the token"
    try:
        after_s = min(max(float(error.headers.get("Retry-After") or 0), 0.0), _LONGEST_WAIT_S)
    except ValueError:
        after_s = 0.0
    alone = error.code in (400, 413, 422)
    return NotTaken(what, again=error.code in _TEMPORARY, after_s=after_s, alone=alone)


def _unreachable(error: Exception) -> NotTaken:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return NotTaken(f"its certificate is not trusted ({reason.verify_message})", again=False)
    if isinstance(reason, TimeoutError):
        return NotTaken("no answer in time", again=True)
    if isinstance(reason, http.client.IncompleteRead | http.client.RemoteDisconnected):
        return NotTaken("the connection was cut", again=True)
    said = (reason.strerror if isinstance(reason, OSError) else None) or str(reason) or type(reason).__name__
    return NotTaken(said[:120], again=not isinstance(reason, ValueError | http.client.InvalidURL))


class _Http(urllib.request.HTTPHandler):
    def __init__(self, wait: _Wait) -> None:
        super().__init__()
        self._wait = wait

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(lambda host, **how: self._wait.watch(http.client.HTTPConnection(host, **how)), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, wait: _Wait) -> None:
        super().__init__()
        self._wait = wait

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        context = ssl.create_default_context()
        return self.do_open(
            lambda host, **how: self._wait.watch(http.client.HTTPSConnection(host, context=context, **how)), req
        )


def _opener(wait: _Wait) -> urllib.request.OpenerDirector:
    """Without redirects: a token is for the server that was named."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(wait),
        _Https(wait),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener

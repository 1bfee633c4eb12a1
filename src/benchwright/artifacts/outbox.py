"""One POST of JSON. No redirect is followed, nothing the server answers is shown, and it has to answer in time."""

from __future__ import annotations

import http.client
import os
import random
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.file_lock import try_lock
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import unwritable, write_whole
from benchwright.version import __version__

# The answer of a server that did not take a message, and the limit on how long it may take to answer.


class Rejected(Exception):
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


_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_ANSWER = 1 << 16
_LONGEST_WAIT_S = 60.0


def checked_url(url: str, *, where: str, remedy: str) -> str:
    """The address, with https where it has no scheme; InvalidInput unless it is one for http or https."""
    url = url if "://" in url else f"https://{url}"
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        whole = False
    if not whole or any(c.isspace() or not c.isprintable() for c in url):
        raise InvalidInput("is no http or https address", where=where, remedy=remedy)
    return url


def post_json(url: str, body: bytes, *, timeout_s: float) -> bytes:
    """Sends `body` to an address that `checked_url` passed, and returns the answer; Rejected unless that is a 2xx."""
    headers = {"Content-Type": "application/json", "User-Agent": f"benchwright/{__version__}"}
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310  # http or https: checked_url
    limit = ConversationLimit(timeout_s)
    try:
        with limit, _opener(limit).open(request, timeout=timeout_s) as answer:
            return _read(answer, limit)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise unreachable(TimeoutError() if limit.is_over else error) from None


def _read(answer: http.client.HTTPResponse, limit: ConversationLimit) -> bytes:
    """The whole answer, unless that takes too long or it is none of ours."""
    found = b""
    while len(found) < _LONGEST_ANSWER:
        part = answer.read1(_LONGEST_ANSWER)
        if limit.is_over:
            raise TimeoutError
        if not part:
            if answer.length:
                raise http.client.IncompleteRead(found)
            return found
        found += part
    raise ValueError("its answer is too long")


def _refused(error: urllib.error.HTTPError) -> Rejected:
    """Its body is not shown: some servers repeat the request, token and all."""
    what = f"it answers {error.code} {error.reason or ''}".rstrip()[:120]
    if error.code in (401, 403):
        what += "; check the token"
    try:
        after_s = min(max(float(error.headers.get("Retry-After") or 0), 0.0), _LONGEST_WAIT_S)
    except ValueError:
        after_s = 0.0
    alone = error.code in (400, 413, 422)
    return Rejected(what, again=error.code in _TEMPORARY, after_s=after_s, alone=alone)


def unreachable(error: Exception) -> Rejected:
    """For a connection that failed or ended early."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Rejected(f"its certificate is not trusted ({reason.verify_message})", again=False)
    if isinstance(reason, TimeoutError):
        return Rejected("no answer in time", again=True)
    if isinstance(reason, http.client.IncompleteRead | http.client.RemoteDisconnected):
        return Rejected("the connection was cut", again=True)
    message = (reason.strerror if isinstance(reason, OSError) else None) or str(reason) or type(reason).__name__
    return Rejected(message[:120], again=not isinstance(reason, ValueError | http.client.InvalidURL))


class _Http(urllib.request.HTTPHandler):
    def __init__(self, limit: ConversationLimit) -> None:
        super().__init__()
        self._limit = limit

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(lambda host, **how: _watched(http.client.HTTPConnection(host, **how), self._limit), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, limit: ConversationLimit) -> None:
        super().__init__()
        self._limit = limit

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        context = ssl.create_default_context()
        return self.do_open(
            lambda host, **how: _watched(http.client.HTTPSConnection(host, context=context, **how), self._limit), req
        )


def _watched(connection: http.client.HTTPConnection, limit: ConversationLimit) -> http.client.HTTPConnection:
    limit.watch(connection)
    return connection


def _opener(limit: ConversationLimit) -> urllib.request.OpenerDirector:
    """Follows no redirects: the data is for the server that was named."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(limit),
        _Https(limit),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


# How often a message is sent, and with what pauses, before it has to wait for the next time.


class SendLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long to try. The n-th pause is up to `pause_s` × 2ⁿ, at random, so that many senders do not return together."""

    attempts: int = 4
    pause_s: float = 0.5
    timeout_s: float = 20.0
    total_s: float = 60.0  # of pauses and failures, over all messages


USUAL_LIMITS = SendLimits()


def sent_in_time(
    send: Callable[[], object], limits: SendLimits, deadline: float, pause: Callable[[float], None] = time.sleep
) -> None:
    """Calls `send` until it raises no Rejected; raises the last one. `deadline`: of time.monotonic()."""
    for attempt in range(limits.attempts):
        try:
            send()
            return
        except Rejected as refusal:
            wait_s = max(refusal.after_s, random.uniform(0.5, 1.0) * limits.pause_s * 2**attempt)  # noqa: S311
            last = attempt + 1 == limits.attempts
            if last or not refusal.again or time.monotonic() + wait_s > deadline:
                raise
        pause(wait_s)


# Messages on disk until a server took them: one file for each, oldest first.
#
# A file is written before its message is sent and removed after the server took it: a crash in between sends it once more, and
# never loses it. Whoever sends a file holds a lock on it, so that several processes can empty one spool together.


T = TypeVar("T")
_ONLY_MINE = 0o600


class Waiting(msgspec.Struct, Generic[T], frozen=True):
    """A file of the spool, and what it holds."""

    path: Path
    content: T


class SpoolFolder(Generic[T]):
    """Holds contents of one type, only readable by its user. Making one touches nothing."""

    def __init__(self, folder: Path, type: type[T]) -> None:
        self.folder = folder
        self._type = type

    def keep(self, content: T) -> Path:
        """CannotWrite says why it could not be kept."""
        path = self.folder / f"{time.time_ns():020d}-{os.urandom(4).hex()}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, msgspec.json.encode(content), mode=_ONLY_MINE)
        except OSError as error:
            raise unwritable(path, error) from error
        return path

    def every(self) -> list[Waiting[T]]:
        """Oldest first. What cannot be read stays where it is; see `damaged`."""
        return [Waiting(path, content) for path in self._files() if (content := self._read(path)) is not None]

    def damaged(self) -> list[Path]:
        """Files that cannot be read, and are not being written or removed just now."""
        return [path for path in self._files() if self._read(path) is None and path.exists()]

    def is_ours(self, content: T) -> bool:
        """Whether this version can send it; for subclasses."""
        return True

    def _read(self, path: Path) -> T | None:
        try:
            content = read_stored_json(path, self._type)
        except (OSError, Unreadable):
            return None
        return content if self.is_ours(content) else None

    def _files(self) -> list[Path]:
        with suppress(OSError):
            return sorted(path for path in self.folder.glob("*.json") if not path.name.startswith("."))
        return []


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether this process alone may send the file; False if another one does, or has."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        # Without locks (some network file systems) two processes may send it; none loses it.
        yield try_lock(handle) and os.fstat(handle).st_nlink > 0
    finally:
        os.close(handle)

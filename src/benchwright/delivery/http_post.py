"""One POST of JSON. No redirect is followed, nothing the server answers is shown, and it has to answer in time."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from benchwright.core.errors import InvalidInput
from benchwright.delivery.not_taken import ConversationLimit, NotTaken
from benchwright.version import __version__

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
    """Sends `body` to an address that `checked_url` passed, and returns the answer; NotTaken unless that is a 2xx."""
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


def unreachable(error: Exception) -> NotTaken:
    """For a connection that failed or ended early."""
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
    """Without redirects: what is sent is for the server that was named."""
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

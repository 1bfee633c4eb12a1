"""Files from http and https, with the standard library: proxies from the environment, certificates of the system."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from typing import IO
from urllib.parse import quote, urljoin, urlsplit

from benchwright.artifacts.limits import FetchLimits
from benchwright.artifacts.locations import shown
from benchwright.artifacts.sources.download import NotModified, Opened, StartOver, TemporaryTrouble
from benchwright.core.errors import CannotFetch
from benchwright.version import __version__

_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
_UNSATISFIABLE = 416
_OTHER_PART = "the server sent another part than asked for"
_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")
_REMEDIES = {
    401: "it needs a login; download it and give its path",
    403: "access was denied; download it and give its path",
    404: "check the location",
    410: "check the location",
}


class WebSource:
    """One URL."""

    def __init__(self, url: str, name: str, limits: FetchLimits) -> None:
        self.shown = shown(url)
        self._url, self._name, self._limits = url, name, limits

    def open(self, start: int, version: str | None, have: str | None) -> Opened:
        headers = {"User-Agent": f"benchwright/{__version__}", "Accept-Encoding": "identity", "Accept": "*/*"}
        if start:
            headers["Range"] = f"bytes={start}-"
            if version:
                headers["If-Range"] = version
        elif have:
            headers["If-None-Match" if have.startswith(('"', "W/")) else "If-Modified-Since"] = have
        request = urllib.request.Request(self._url, headers=headers)  # noqa: S310  # locations.py allowed it
        try:
            answer: http.client.HTTPResponse = self._opener().open(request, timeout=self._limits.connect_s)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(error, start)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._trouble(error) from error
        _be_patient(answer, self._limits.stall_s)
        return self._opened(answer, start)

    def _opened(self, answer: http.client.HTTPResponse, start: int) -> Opened:
        headers = answer.headers
        if headers.get("Content-Encoding", "identity").lower() not in ("identity", ""):
            answer.close()
            raise CannotFetch(
                f"{self._name}: {self.shown}: the server sends it compressed ({headers['Content-Encoding']})",
                remedy="download it and give its path",
            )
        length = _whole_number(headers.get("Content-Length"))
        total = length
        if answer.status == http.client.PARTIAL_CONTENT:
            found = _RANGE.fullmatch(headers.get("Content-Range", "").strip())
            if found is None or found[1] is None or int(found[1]) != start:
                answer.close()
                raise StartOver(_OTHER_PART)
            total = int(found[2]) if found[2] != "*" else None if length is None else start + length
        else:
            start = 0
        return Opened(self._reader(answer), answer.close, start, total, _version(headers))

    def _refused(self, error: urllib.error.HTTPError, start: int) -> Opened:
        status = error.code
        if status == http.client.NOT_MODIFIED:
            raise NotModified
        if status == _UNSATISFIABLE and start:
            found = _RANGE.fullmatch(error.headers.get("Content-Range", "").strip())
            if found is not None and found[2] == str(start):  # the part is complete already
                return Opened(lambda size: b"", lambda: None, start, start, _version(error.headers))
            raise StartOver(_OTHER_PART)
        what = f"the server answers {status} {error.reason or ''}".rstrip()
        if status in _TEMPORARY:
            raise TemporaryTrouble(what, float(_whole_number(error.headers.get("Retry-After")) or 0))
        raise CannotFetch(
            f"{self._name}: cannot fetch {self.shown}: {what}", remedy=_REMEDIES.get(status, "check the location")
        )

    def _reader(self, answer: http.client.HTTPResponse) -> Callable[[int], bytes]:
        def read(size: int) -> bytes:
            try:
                return answer.read1(size)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._trouble(error) from error

        return read

    def _trouble(self, error: Exception) -> Exception:
        """An exception of the standard library as a final or a temporary failure."""
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        head = f"{self._name}: cannot fetch {self.shown}"
        if isinstance(reason, ssl.SSLCertVerificationError):
            remedy = "if you trust it, name its authority's file in $SSL_CERT_FILE"
            return CannotFetch(f"{head}: its certificate is not trusted ({reason.verify_message})", remedy=remedy)
        if isinstance(reason, TimeoutError):
            return TemporaryTrouble("no answer in time")
        if isinstance(reason, http.client.InvalidURL | ValueError):
            return CannotFetch(f"{head}: {reason}", remedy="check the location")
        if isinstance(reason, http.client.IncompleteRead):
            return TemporaryTrouble("the connection was cut")
        message = (reason.strerror if isinstance(reason, OSError) else None) or str(reason) or type(reason).__name__
        return TemporaryTrouble(message[:200])

    def _opener(self) -> urllib.request.OpenerDirector:
        """Only http and https: a redirect leads nowhere else."""
        opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            _Web(),
            _SecureWeb(context=ssl.create_default_context()),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _Redirects(self._name, self.shown, self._limits.max_redirects),
        ):
            opener.add_handler(handler)
        return opener


class _Hurried(http.client.HTTPConnection):
    """Headers that come byte by byte would never time out: all of them have to be here in time."""

    def getresponse(self) -> http.client.HTTPResponse:
        late = threading.Event()

        def hang_up() -> None:
            late.set()
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(self.timeout or 0.0, hang_up)
        timer.daemon = True
        timer.start()
        try:
            answer = super().getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise TimeoutError if late.is_set() else error from None
        finally:
            timer.cancel()
        if late.is_set():
            answer.close()
            raise TimeoutError
        return answer


class _HurriedSecurely(_Hurried, http.client.HTTPSConnection):
    pass


class _Web(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Hurried, req)


class _SecureWeb(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._verifying = context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HurriedSecurely, req, context=self._verifying)


class _Redirects(urllib.request.BaseHandler):
    """Follows a few, never from https to http, and only to the web."""

    def __init__(self, name: str, shown: str, most: int) -> None:
        self._head = f"{name}: cannot fetch {shown}"
        self._most, self._followed = most, 0

    def http_error_302(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message
    ) -> object:
        fp.close()
        target = urlsplit(urljoin(req.full_url, headers.get("Location", "")))
        self._followed += 1
        why = None
        if self._followed > self._most:
            why = f"more than {self._most} redirects"
        elif target.scheme not in ("http", "https") or "@" in target.netloc:
            why = f"it redirects to {shown(target.geturl())}, which is not followed"
        elif target.scheme == "http" and urlsplit(req.full_url).scheme == "https":
            why = "it redirects from https to http, where anybody could change it"
        if why is not None:
            raise CannotFetch(f"{self._head}: {why}", remedy="check the location")
        url = quote(target.geturl(), safe="%/:=&?~#+!$,;'@()*[]")
        request = urllib.request.Request(url, headers=dict(req.headers))  # noqa: S310  # checked above
        return self.parent.open(request, timeout=req.timeout)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _version(headers: Message) -> str | None:
    """A strong ETag, else the date of the last change: what If-Range accepts."""
    etag = (headers.get("ETag") or "").strip()
    return etag if etag.startswith('"') else headers.get("Last-Modified")


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,18}", text.strip()) else None


def _be_patient(answer: http.client.HTTPResponse, seconds: float) -> None:
    """Connecting has another limit than a silence in the middle of a file."""
    raw = getattr(getattr(answer.fp, "raw", None), "_sock", None)
    if raw is not None:
        raw.settimeout(seconds)

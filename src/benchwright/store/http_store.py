"""A store that is a server: `--store https://host`. The methods of the seam over HTTP, and nothing beside them.

The token is in $BENCHWRIGHT_TOKEN, or in the file that $BENCHWRIGHT_TOKEN_FILE names. No proxy is used and no redirect
followed: the token is for the server that was named.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import ipaddress
import json
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from benchwright.core import errors
from benchwright.core.errors import InvalidInput, NewerStore, StoreAway, StoreTrouble
from benchwright.core.run import Run
from benchwright.core.secrets import STORE_TOKEN as TOKEN_VARIABLE
from benchwright.core.stored_file import open_stored
from benchwright.store.base import Aggregate, RunFilter, RunRow, RunStanding, StoreEntry, SummaryFilter, SummarySeries
from benchwright.store.run_document import DamagedDocument, plain
from benchwright.store.samples import DamagedSamples
from benchwright.store.transfer import MOST_BYTES, DamagedTransfer, next_run, packed_entry
from benchwright.version import __version__

API = "/api/v1"
TOKEN_FILE_VARIABLE = "BENCHWRIGHT_TOKEN_FILE"
_CONNECT_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 300.0
_TOGETHER = 50  # runs of one answer
_LONGEST_TOKEN = 1000
_KEPT = "no result is lost; send what waits later: benchwright store send"
T = TypeVar("T")


class ServerError(msgspec.Struct, kw_only=True):
    """A server's answer if it did not do what it was asked for. `kind`: the name of one of our errors."""

    kind: str
    what: str
    remedy: str
    where: str | None = None


class ServerVersion(msgspec.Struct):
    """`schema`: the version of its store; `known`: the newest that the server knows."""

    benchwright: str
    schema: str
    known: str


def open_store(
    url: str, *, create: bool = True, aggregate: Aggregate | None = None, patience_s: float | None = None
) -> HttpStore:
    """The server at `url`, which has a store already and condenses samples itself. See `base.OpenStore`."""
    store = HttpStore(checked_url(url), _token(os.environ), patience_s)
    version = store.version()
    if version.schema > version.known:
        store.close()
        raise NewerStore(
            f"its store has version {version.schema}; the server knows versions up to {version.known}",
            where=store.where,
            remedy="start the server with a newer benchwright; nothing was changed",
        )
    return store


def checked_url(url: str, where: str = "--store") -> SplitResult:
    """InvalidInput unless it is the address of a server, without a secret, to which a token may be sent."""
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        whole = False
    if not whole or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput("this is no http or https address", where=where, remedy="such as https://bench.example.org")
    if parts.username or parts.password or parts.query or parts.fragment:
        remedy = f"put the token into ${TOKEN_VARIABLE}, or into a file that ${TOKEN_FILE_VARIABLE} names"
        raise InvalidInput("a token has no place in an address", where=where, remedy=remedy)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        remedy = "use https, or an ssh tunnel to this machine"
        raise InvalidInput("http would send the token readable for everybody", where=where, remedy=remedy)
    return parts


vars(open_store)["check_address"] = checked_url


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(environment: Mapping[str, str]) -> str:
    """Empty if there is none; InvalidInput if its file cannot be used."""
    if token := environment.get(TOKEN_VARIABLE, "").strip():
        return token
    if not (path := environment.get(TOKEN_FILE_VARIABLE, "")):
        return ""
    where = f"${TOKEN_FILE_VARIABLE}"
    try:
        with open_stored(path) as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise InvalidInput("others can read the file of the token", where=where, remedy=f"chmod 600 {path}")
            token = file.read(_LONGEST_TOKEN).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidInput(
            f"the file of the token cannot be read: {why}", where=where, remedy="check the path"
        ) from None
    return token


class HttpStore:
    """`base.RunStore` documents the methods; `open_store` makes one."""

    def __init__(self, url: SplitResult, token: str, patience_s: float | None) -> None:
        self.where = url.geturl()
        self._url = url
        self._headers = {"User-Agent": f"benchwright/{__version__}", "Accept-Encoding": "identity"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._patience_s = _CONNECT_TIMEOUT_S if patience_s is None else patience_s
        self._connection: http.client.HTTPConnection | None = None

    def version(self) -> ServerVersion:
        return self._get("/version", ServerVersion)

    def ingest(self, run: Run, *, digest: str) -> bool:
        return self._put([StoreEntry(run=run, digest=digest)], replace=False)

    def ingest_all(self, entries: Sequence[StoreEntry], *, replace: bool = False) -> None:
        if entries:
            self._put(entries, replace=replace)

    def _put(self, entries: Sequence[StoreEntry], *, replace: bool) -> bool:
        """Whether that changed anything."""
        if not replace:
            known = self.digests() if len(entries) > 1 else {}
            of = known.get if known else self.digest_of
            entries = [e for e in entries if of(plain(e.run.unique_id)) != plain(e.digest)]
        if not entries:
            return False
        parts = [part for entry in entries for part in packed_entry(entry)]
        size = sum(map(len, parts))
        if size > MOST_BYTES:
            said = f"{size >> 20} MiB at once; a server takes at most {MOST_BYTES >> 20}"
            raise StoreTrouble(
                f"cannot take {said}", where=self.where, remedy="the run folders have it; keep fewer samples"
            )
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        words = base64.b64encode(digest.digest()).decode()
        headers = {"Content-Length": str(size), "Content-Digest": f"sha-256=:{words}:"}
        path = f"/run?{urlencode({'uid': plain(entries[0].run.unique_id)})}" if len(entries) == 1 else "/runs?"
        answer = self._asked("PUT", f"{path}&replace={int(replace)}", parts, headers)
        return self._read(answer, int) > 0

    def digest_of(self, uid: str) -> str | None:
        return self._get(f"/digests?{urlencode({'uid': plain(uid)})}", dict[str, str]).get(plain(uid))

    def digests(self) -> dict[str, str]:
        return self._get("/digests", dict[str, str])

    def runs(self, where: RunFilter, *, limit: int | None = 50, newest_first: bool = True) -> list[RunRow]:
        body = {"where": msgspec.to_builtins(where), "limit": limit, "newest_first": newest_first}
        return self._send("POST", "/find", list[RunRow], body)

    def logs(self, run_id: str) -> dict[str, list[str]]:
        return self._get(f"/logs?{urlencode({'id': plain(run_id)})}", dict[str, list[str]])

    def series(self, where: SummaryFilter, *, limit: int | None = None, offset: int = 0) -> list[SummarySeries]:
        body = {"where": msgspec.to_builtins(where), "limit": limit, "offset": offset}
        return self._send("POST", "/series", list[SummarySeries], body)

    def summaries(
        self, where: SummaryFilter, *, newest: int | None = None, most: int | None = None
    ) -> list[SummarySeries]:
        body = {"where": msgspec.to_builtins(where), "newest": newest, "most": most}
        return self._send("POST", "/summaries", list[SummarySeries], body)

    def standing(self) -> list[RunStanding]:
        return self._get("/standing", list[RunStanding])

    def load(self, run_id: str) -> Run:
        answer = self._asked("GET", f"/run?{urlencode({'id': plain(run_id)})}")
        try:
            run = next_run(answer.read)
            if run is None:
                raise DamagedTransfer("it is empty")
            return run
        except (DamagedDocument, DamagedSamples, DamagedTransfer) as error:
            self.close()
            what = f"the document of run {run_id}" if isinstance(error, DamagedDocument) else f"run {run_id}:"
            remedy = "rebuild the server's store there, or send the run again: benchwright store rebuild"
            raise StoreTrouble(f"{what} {error}", where=self.where, remedy=remedy) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._away(error) from error

    def load_all(self, uids: Sequence[str]) -> Iterator[Run]:
        for start in range(0, len(uids), _TOGETHER):
            some = [plain(uid) for uid in uids[start : start + _TOGETHER]]
            # On a separate connection: between two runs, the caller may ask for something else.
            with HttpStore(self._url, "", self._patience_s) as beside:
                beside._headers = self._headers
                answer = beside._asked("POST", "/load", *_as_json(some))
                yield from beside._runs_of(answer)

    def _runs_of(self, answer: http.client.HTTPResponse) -> Iterator[Run]:
        while True:
            try:
                run = next_run(answer.read)
            except (DamagedDocument, DamagedSamples):
                continue
            except (OSError, http.client.HTTPException, DamagedTransfer) as error:
                raise self._away(error) from error
            if run is None:
                return
            yield run

    def delete(self, run_id: str) -> bool:
        return self._send("DELETE", f"/run?{urlencode({'id': plain(run_id)})}", bool)

    def annotate(self, run_id: str, text: str | None) -> None:
        self._send("PUT", f"/annotation?{urlencode({'id': plain(run_id)})}", bool, text)

    def set_baseline(self, name: str, run_id: str) -> None:
        self._send("PUT", f"/baseline?{urlencode({'name': plain(name), 'id': plain(run_id)})}", bool)

    def remove_baseline(self, name: str) -> bool:
        return self._send("DELETE", f"/baseline?{urlencode({'name': plain(name)})}", bool)

    def baseline(self, name: str) -> str | None:
        return self.baselines().get(plain(name))

    def baselines(self) -> dict[str, str]:
        return self._get("/baselines", dict[str, str])

    def check(self) -> list[str]:
        return self._get("/problems", list[str])

    def duplicates(self) -> list[str]:
        return self._get("/duplicates", list[str])

    def schema_version(self) -> str:
        return self.version().schema

    def migrate(self) -> None:
        self._send("POST", "/migrate", bool)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _get(self, path: str, type: type[T]) -> T:
        return self._read(self._asked("GET", path), type)

    def _send(self, method: str, path: str, type: type[T], body: object = msgspec.UNSET) -> T:
        parts, headers = ([], {"Content-Length": "0"}) if body is msgspec.UNSET else _as_json(body)
        return self._read(self._asked(method, path, parts, headers), type)

    def _read(self, answer: http.client.HTTPResponse, type: type[T]) -> T:
        try:
            return msgspec.json.decode(answer.read(MOST_BYTES), type=type)
        except msgspec.DecodeError:
            self.close()
            raise self._stranger() from None
        except (OSError, http.client.HTTPException) as error:
            raise self._away(error) from error

    def _asked(
        self, method: str, path: str, body: Sequence[bytes] = (), headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """The answer, if it is a good one; StoreAway, StoreTrouble or InvalidInput as the server says."""
        kept = self._connection is not None
        if method == "DELETE":  # once, on a new connection: its answer says whether there was something
            self.close()
            kept = False
        try:
            answer = self._answered(method, path, body, headers or {})
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not kept:
                raise self._away(error) from error
            return self._asked(method, path, body, headers)  # an idle connection that the server has closed
        if answer.status == 200:
            return answer
        raise self._refused(answer)

    def _answered(
        self, method: str, path: str, body: Sequence[bytes], headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = self._connected()
        connection = self._connection
        try:
            place = f"{self._url.path.rstrip('/')}{API}{path}"
            connection.request(method, place, iter(body) if body else None, self._headers | dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            with suppress(OSError, http.client.HTTPException):  # it may have said why it wants no more
                return connection.getresponse()
            raise
        return connection.getresponse()

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        connection: http.client.HTTPConnection
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=self._patience_s, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._patience_s)
        connection.connect()
        connection.sock.settimeout(_ANSWER_TIMEOUT_S)
        return connection

    def _away(self, error: Exception) -> StoreAway:
        self.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted ({error.verify_message})"
        elif isinstance(error, TimeoutError):
            why = "no answer in time"
        else:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        return StoreAway(f"cannot be reached: {why}", where=self.where, remedy=_KEPT)

    def _refused(self, answer: http.client.HTTPResponse) -> Exception:
        """The server's own words, only if they are those of our server: others may repeat the token."""
        try:
            said = msgspec.json.decode(answer.read(1 << 16), type=ServerError)
        except (msgspec.DecodeError, OSError, http.client.HTTPException):
            said = None
        self.close()
        if answer.status in (401, 403):
            what = said.what if said is not None else "it refuses the token"
            return StoreAway(what, where=self.where, remedy=f"set ${TOKEN_VARIABLE}; {_KEPT}")
        if answer.status in (429, 502, 503, 504) and said is None:
            return StoreAway(f"cannot be reached: it answers {answer.status}", where=self.where, remedy=_KEPT)
        if said is None:
            return self._stranger(answer.status)
        if said.kind == "InvalidInput":
            return InvalidInput(said.what, where=said.where or self.where, remedy=said.remedy)
        kind = getattr(errors, said.kind, StoreTrouble)
        is_ours = isinstance(kind, type) and issubclass(kind, StoreTrouble)
        return (kind if is_ours else StoreTrouble)(said.what, where=self.where, remedy=said.remedy)

    def _stranger(self, status: int | None = None) -> StoreTrouble:
        said = "" if status is None else f": it answers {status}"
        remedy = f"check the address, and that both sides have the same version; {_KEPT}"
        return StoreAway(f"is no server of benchwright {__version__}{said}", where=self.where, remedy=remedy)


def _as_json(body: object) -> tuple[list[bytes], dict[str, Any]]:
    """Python's own JSON: names may hold what is not valid Unicode."""
    text = json.dumps(body).encode()
    return [text], {"Content-Type": "application/json", "Content-Length": str(len(text))}

"""The server's routes. Each names the scope that its token needs; a body is checked before anything believes it."""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from benchwright.core.errors import BenchwrightError, InvalidInput, StoreTrouble
from benchwright.core.redacted import run_without_secrets
from benchwright.core.run import Run
from benchwright.regress.notify.notify import notify
from benchwright.regress.notify.targets import Target
from benchwright.server.change_book import ChangeBook, notice_of_changes
from benchwright.server.openapi import DescribedRoute, RouteTypes, describe
from benchwright.server.page_routes import PageRoutes
from benchwright.server.pages.frame import Archive
from benchwright.server.route import FOREIGN_ROUTES, ForeignPost, ForeignRoute
from benchwright.server.settings import ServerSettings
from benchwright.server.tokens import Scope, Token, TokenFile
from benchwright.store.base import RunFilter, RunRow, RunStanding, StoreEntry, SummaryFilter, SummarySeries
from benchwright.store.http_store import API, ServerError, ServerVersion
from benchwright.store.run_document import DamagedDocument, plain
from benchwright.store.samples import DamagedSamples
from benchwright.store.schema import VERSION
from benchwright.store.sql_store import SqlStore
from benchwright.store.transfer import MOST_BYTES, DamagedTransfer, received_runs
from benchwright.version import __version__

_MOST_JSON = 1 << 20
_MOST_FOREIGN = 32 << 20
_MOST_LOADED = 200
_SILENCE_S = 60.0  # of a client in the middle of its body
_LOG = logging.getLogger("benchwright.server")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
Handler = Callable[["ServedStore", Request], Awaitable[Response]]


class Refused(Exception):
    """The request is not done: `status`, and words for the user."""

    def __init__(self, status: int, what: str, remedy: str, kind: str = "StoreTrouble") -> None:
        super().__init__(what)
        self.status = status
        self.error = ServerError(kind=kind, what=what, remedy=remedy)


class _Find(msgspec.Struct, forbid_unknown_fields=True):
    where: RunFilter
    limit: int | None = 50
    newest_first: bool = True


class _Series(msgspec.Struct, forbid_unknown_fields=True):
    where: SummaryFilter
    limit: int | None = None
    offset: int = 0


class _Summaries(msgspec.Struct, forbid_unknown_fields=True):
    where: SummaryFilter
    newest: int | None = None
    most: int | None = None


class ServedStore:
    """One store, its tokens, and the folder for bodies that arrive."""

    def __init__(
        self,
        store: SqlStore,
        tokens: TokenFile,
        folder: Path,
        settings: ServerSettings | None = None,
        receivers: Sequence[Target] = (),
    ) -> None:
        self.root = self  # with the project that is served unless another one is named
        self.store = store
        self.tokens = tokens
        self.folder = folder
        self.settings = settings or ServerSettings()
        self.receivers = receivers  # of notices, when a change is confirmed
        self.book = ChangeBook(folder, store.project)
        self.pages = PageRoutes(Archive(store, self.book, str(folder / "runs")), tokens, self.settings)
        self.at_once = asyncio.Semaphore(1)  # one body in memory, however many arrive

    def of_project(self, name: str) -> ServedStore:
        """The same as a project sees it."""
        if name == self.store.project:
            return self
        seen = copy.copy(self)
        seen.store, seen.book = self.store.of_project(name), self.book.of_project(name)
        return seen

    def app(self) -> Starlette:
        routes = [
            Route("/healthz", self._healthz, methods=["GET"]),
            Route("/openapi.json", _described, methods=["GET"]),
        ]
        paths = sorted({path for _, path, _, _ in ROUTES})
        routes += [Route(API + path, self._answer, methods=[m for m, p, _, _ in ROUTES if p == path]) for path in paths]
        routes += [Route(each.path, self._taking(each), methods=["POST"]) for each in foreign_routes()]
        routes += self.pages.routes()
        return Starlette(routes=routes, exception_handlers={HTTPException: _unknown, Exception: _broken})

    async def _healthz(self, request: Request) -> Response:
        try:
            await run_in_threadpool(self.store.schema_version)
        except StoreTrouble:
            return _json({"status": "the store cannot be used"}, 503)
        return _json({"status": "ok", "benchwright": __version__})

    async def _answer(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", "")).removeprefix(API)
        method = "GET" if request.method == "HEAD" else request.method
        scope, handler = next((s, h) for m, p, s, h in ROUTES if (m, p) == (method, path))
        try:
            named = plain(request.query_params.get("project", ""))
            token = await run_in_threadpool(self._allowed, request.headers.get("authorization", ""), scope, named)
            project = named or token.project
            answer = await handler(await run_in_threadpool(self.of_project, project), request)
            if scope > Scope.READ:
                action = f"{request.method} {path} {request.url.query[:500]}"
                await run_in_threadpool(self._note, token.name, action, project)
            return answer
        except Refused as error:
            return _json(error.error, error.status)
        except InvalidInput as error:
            where = None if error.where == self.store.where else error.where
            return _json(_in_words(error, where), 422)
        except StoreTrouble as error:
            return _json(_in_words(error, None), 503)
        except (DamagedDocument, DamagedSamples, DamagedTransfer) as error:
            return _json(
                ServerError(kind="StoreTrouble", what=plain(f"refused the run: {error}"), remedy=_SAME_VERSION), 400
            )

    def _note(self, name: str, action: str, project: str) -> None:
        method, _, rest = action.partition(" ")
        _LOG.info("%s by %r: %s", method, name, rest)
        self.pages.audit.note(name, action, project)

    def examined(self, uids: Sequence[str]) -> BackgroundTask:
        """Looks for changes after the answer, in the series that these runs have added to."""

        def look() -> None:
            try:
                for uid in uids:
                    self.book.examine_run(self.store, uid)
                if self.receivers and (found := self.book.to_tell()):
                    notify(notice_of_changes(found), self.receivers, spool=self.folder)
            except BenchwrightError as error:
                _LOG.warning("changes were not looked for: %s", error)  # the next run of the series does

        return BackgroundTask(look)

    def catch_up(self) -> None:
        """Looks for changes in what was stored while no server ran."""
        try:
            for project in self.store.projects():
                seen = self.of_project(project)
                seen.book.examine_all(seen.store)
            self.book.to_tell()  # what was there before is no news
        except BenchwrightError as error:
            _LOG.warning("changes were not looked for: %s", error)

    def _taking(self, route: ForeignRoute) -> Callable[[Request], Awaitable[Response]]:
        async def taken(request: Request) -> Response:
            try:
                post = await run_in_threadpool(route.read, await _read_body(request, _MOST_FOREIGN))
                token = await run_in_threadpool(self._known, post.token, Scope.WRITE, "")
                seen = self.of_project(token.project)
                async with self.at_once:
                    uids = await run_in_threadpool(seen._stored_foreign, route, post)
                action = f"POST {route.path} {' '.join(uids)[:500]}"
                await run_in_threadpool(self._note, token.name, action, token.project)
                answer = _json(route.answer(post))
                answer.background = seen.examined(uids)
                return answer
            except Refused as error:
                return _json(error.error, error.status)
            except InvalidInput as error:
                return _json(_in_words(error, error.where), 400)
            except StoreTrouble as error:
                return _json(_in_words(error, None), 503)

        return taken

    def _stored_foreign(self, route: ForeignRoute, post: ForeignPost) -> list[str]:
        def stored(uid: str) -> Run | None:
            return None if self.store.digest_of(uid) is None else self.store.load(uid)

        found = [(run_without_secrets(each.run), each.digest) for each in route.runs(post, stored)]
        self.store.ingest_all([StoreEntry(run=run, digest=digest) for run, digest in found])
        return [run.unique_id for run, _ in found]

    def _allowed(self, header: str, scope: Scope, project: str) -> Token:
        """`project`: the one that was named, if any."""
        kind, _, secret = header.partition(" ")
        if not header and self.settings.public and scope is Scope.READ and project in ("", self.settings.project):
            return msgspec.structs.replace(_ANYBODY, project=self.settings.project)
        return self._known(secret.strip() if kind.lower() == "bearer" else "", scope, project)

    def _known(self, secret: str, scope: Scope, project: str) -> Token:
        token = self.tokens.of(secret)
        if token is None:
            what = "it does not know the token, or it has expired" if secret else "it wants a token"
            raise Refused(401, what, "ask for one, made by: benchwright token create NAME")
        if project and not token.may(token.scope, project):
            what = f"the token '{token.name}' is for the project '{token.project}', not '{project}'"
            raise Refused(403, what, "ask for one of this project: benchwright token create NAME --project PROJECT")
        if token.scope < scope:
            what = f"the token '{token.name}' may only {token.scope.word}; this needs {scope.word}"
            raise Refused(403, what, f"ask for one, made by: benchwright token create NAME --scope {scope.word}")
        return token


_ANYBODY = Token(name="anybody", scope=Scope.READ, created=0.0, expires=None, used=None)
_SAME_VERSION = "use the same version of benchwright on both sides; the run folder has everything"


async def _version(served: ServedStore, request: Request) -> Response:
    schema = await run_in_threadpool(served.store.schema_version)
    return _json(ServerVersion(__version__, schema, VERSION))


async def _digests(served: ServedStore, request: Request) -> Response:
    if "uid" not in request.query_params:
        return _json(await run_in_threadpool(served.store.digests))
    uid = _word(request, "uid")
    digest = await run_in_threadpool(served.store.digest_of, uid)
    return _json({} if digest is None else {uid: digest})


async def _find(served: ServedStore, request: Request) -> Response:
    asked = await _read_json(request, _Find)

    def found() -> bytes:
        limit = _within(asked.limit)
        return msgspec.json.encode(served.store.runs(asked.where, limit=limit, newest_first=asked.newest_first))

    return _json(msgspec.Raw(await run_in_threadpool(found)))


async def _logs(served: ServedStore, request: Request) -> Response:
    return _json(await run_in_threadpool(served.store.logs, _word(request, "id")))


async def _series(served: ServedStore, request: Request) -> Response:
    asked = await _read_json(request, _Series)

    def found() -> bytes:
        limit, offset = _within(asked.limit), _within(asked.offset) or 0
        return msgspec.json.encode(served.store.series(asked.where, limit=limit, offset=offset))

    return _json(msgspec.Raw(await run_in_threadpool(found)))


async def _summaries(served: ServedStore, request: Request) -> Response:
    asked = await _read_json(request, _Summaries)

    def found() -> bytes:
        newest, most = _within(asked.newest), _within(asked.most)
        return msgspec.json.encode(served.store.summaries(asked.where, newest=newest, most=most))

    return _json(msgspec.Raw(await run_in_threadpool(found)))


def _within(number: int | None) -> int | None:
    """A count that every database can take."""
    return None if number is None else min(max(number, 0), 1 << 31)


async def _standing(served: ServedStore, request: Request) -> Response:
    return _json(await run_in_threadpool(served.store.standing))


async def _load(served: ServedStore, request: Request) -> Response:
    parts = await run_in_threadpool(served.store.packed, _word(request, "id"))
    headers = _HEADERS | {"Content-Length": str(sum(map(len, parts)))}
    return StreamingResponse(_one_by_one(parts), media_type="application/octet-stream", headers=headers)


async def _load_all(served: ServedStore, request: Request) -> Response:
    uids = await _read_json(request, list[str])
    if len(uids) > _MOST_LOADED:
        raise Refused(413, f"at most {_MOST_LOADED} runs at once", "ask for fewer")

    def found() -> Iterator[bytes]:
        for uid in uids:
            try:
                if served.store.digest_of(uid) is not None:  # by uid alone
                    yield from served.store.packed(uid)
            except BenchwrightError:
                continue  # it was deleted just now, or is damaged: those are left out

    answer = StreamingResponse(iterate_in_threadpool(found()), media_type="application/octet-stream", headers=_HEADERS)
    return answer


async def _put(served: ServedStore, request: Request) -> Response:
    return await _ingested(served, request, _word(request, "uid"))


async def _put_all(served: ServedStore, request: Request) -> Response:
    return await _ingested(served, request, None)


async def _ingested(served: ServedStore, request: Request, uid: str | None) -> Response:
    """`uid`: the only run in the body must be this one."""
    replace = request.query_params.get("replace") == "1"
    try:
        with tempfile.TemporaryFile(dir=served.folder) as file:
            size = await _received(request, file)

            uids: list[str] = []

            def ingest() -> int:
                runs = received_runs(file, size)
                uids.extend(run.uid for run in runs)
                if uid is not None and [run.uid for run in runs] != [uid]:
                    raise DamagedTransfer("it is not the run that its address names")
                return served.store.ingest_received(runs, replace=replace)

            async with served.at_once:
                answer = _json(await run_in_threadpool(ingest))
            answer.background = served.examined(uids)
            return answer
    except OSError as error:
        raise Refused(507, f"cannot take the run: {error.strerror or error}", _LATER, "StoreAway") from None


_LATER = "free some space on the server; no result is lost, later: benchwright store send"


async def _received(request: Request, file: BinaryIO) -> int:
    """Writes the body into the file while it arrives; its size. Refused unless it is whole and not too large."""
    announced = request.headers.get("content-length", "0")
    too_large = Refused(413, f"takes at most {MOST_BYTES >> 20} MiB at once", "keep fewer samples, or send fewer runs")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > MOST_BYTES:
        raise too_large
    digest, size = hashlib.sha256(), 0
    async for chunk in _body(request):
        size += len(chunk)
        if size > MOST_BYTES:
            raise too_large
        digest.update(chunk)
        file.write(chunk)
    expected = f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    if request.headers.get("content-digest") != expected:
        raise Refused(
            400, "what arrived is not what was sent: its Content-Digest is another", "send it again", "StoreAway"
        )
    file.flush()
    return size


async def _body(request: Request) -> AsyncIterator[bytes]:
    stream = request.stream().__aiter__()
    try:
        while True:
            try:
                yield await asyncio.wait_for(anext(stream), _SILENCE_S)
            except StopAsyncIteration:
                return
    except (ClientDisconnect, TimeoutError):
        raise Refused(400, "the body was cut off", "send it again", "StoreAway") from None


async def _delete(served: ServedStore, request: Request) -> Response:
    return _json(await run_in_threadpool(served.store.delete, _word(request, "id")))


async def _annotate(served: ServedStore, request: Request) -> Response:
    text: str | None = await _read_json(request, str | None)
    await run_in_threadpool(served.store.annotate, _word(request, "id"), text)
    return _json(True)


async def _baselines(served: ServedStore, request: Request) -> Response:
    return _json(await run_in_threadpool(served.store.baselines))


async def _set_baseline(served: ServedStore, request: Request) -> Response:
    await run_in_threadpool(served.store.set_baseline, _word(request, "name"), _word(request, "id"))
    return _json(True)


async def _remove_baseline(served: ServedStore, request: Request) -> Response:
    return _json(await run_in_threadpool(served.store.remove_baseline, _word(request, "name")))


async def _duplicates(served: ServedStore, request: Request) -> Response:
    return _json(await run_in_threadpool(served.store.duplicates))


async def _problems(served: ServedStore, request: Request) -> Response:
    return _json(await run_in_threadpool(served.store.check))


async def _migrate(served: ServedStore, request: Request) -> Response:
    await run_in_threadpool(served.root.store.migrate)  # all projects
    return _json(True)


def _word(request: Request, name: str) -> str:
    """A parameter that must be there."""
    if name not in request.query_params:
        raise Refused(400, f"the parameter '{name}' is missing", "use a client of the same version")
    return plain(request.query_params[name])


async def _read_body(request: Request, most: int) -> bytes:
    body = bytearray()
    async for chunk in _body(request):
        body += chunk
        if len(body) > most:
            raise Refused(413, f"takes at most {most >> 20} MiB of JSON", "send less at once")
    return bytes(body)


async def _read_json(request: Request, type: Any) -> Any:
    body = await _read_body(request, _MOST_JSON)
    try:
        return msgspec.convert(json.loads(body), type)
    except (ValueError, RecursionError) as error:  # also UnicodeDecodeError and msgspec.ValidationError
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise Refused(400, f"the body cannot be read: {plain(said)}", "use a client of the same version") from None


def foreign_routes() -> list[ForeignRoute]:
    return [FOREIGN_ROUTES.load(name)() for name in FOREIGN_ROUTES.names()]


async def _described(request: Request) -> Response:
    described = [DescribedRoute(m, p, scope, TYPES[f"{m} {p}"]) for m, p, scope, _ in ROUTES]
    return _json(describe(described, [route.path for route in foreign_routes()]))


async def _one_by_one(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _in_words(error: InvalidInput | StoreTrouble, where: str | None) -> ServerError:
    kind, shown = type(error).__name__, None if where is None else plain(where)
    return ServerError(kind=kind, what=plain(error.what), remedy=plain(error.remedy or ""), where=shown)


def _json(body: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, _HEADERS, media_type="application/json")


async def _unknown(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = f"has no {request.method} of this address: it is benchwright {__version__} and speaks {API}"
    return _json(ServerError(kind="StoreTrouble", what=what, remedy=_SAME_VERSION), status)


async def _broken(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    what = "the server failed; its log says why"
    return _json(ServerError(kind="StoreAway", what=what, remedy="tell whoever runs it; no result is lost"), 500)


# Method, path, scope, handler.
ROUTES: tuple[tuple[str, str, Scope, Handler], ...] = (
    ("GET", "/version", Scope.READ, _version),
    ("GET", "/digests", Scope.READ, _digests),
    ("POST", "/find", Scope.READ, _find),
    ("GET", "/logs", Scope.READ, _logs),
    ("POST", "/series", Scope.READ, _series),
    ("POST", "/summaries", Scope.READ, _summaries),
    ("GET", "/standing", Scope.READ, _standing),
    ("GET", "/run", Scope.READ, _load),
    ("POST", "/load", Scope.READ, _load_all),
    ("PUT", "/run", Scope.WRITE, _put),
    ("PUT", "/runs", Scope.WRITE, _put_all),
    ("DELETE", "/run", Scope.ADMIN, _delete),
    ("PUT", "/annotation", Scope.WRITE, _annotate),
    ("GET", "/baselines", Scope.READ, _baselines),
    ("PUT", "/baseline", Scope.WRITE, _set_baseline),
    ("DELETE", "/baseline", Scope.WRITE, _remove_baseline),
    ("GET", "/duplicates", Scope.READ, _duplicates),
    ("GET", "/problems", Scope.ADMIN, _problems),
    ("POST", "/migrate", Scope.ADMIN, _migrate),
)

# What each of them takes and gives.
TYPES = {
    "GET /version": RouteTypes("The versions of the server and of its store", ServerVersion),
    "GET /digests": RouteTypes("Run → digest, of all or of one run", dict[str, str], optional=("uid",)),
    "POST /find": RouteTypes("The runs that match", list[RunRow], _Find),
    "GET /logs": RouteTypes("The last lines of launches that failed", dict[str, list[str]], parameters=("id",)),
    "POST /series": RouteTypes("Series, each with its newest summary", list[SummarySeries], _Series),
    "POST /summaries": RouteTypes("Series with their summaries", list[SummarySeries], _Summaries),
    "GET /standing": RouteTypes("The state of every run", list[RunStanding]),
    "GET /run": RouteTypes("A run, packed", bytes, parameters=("id",)),
    "POST /load": RouteTypes("Several runs, packed", bytes, list[str]),
    "PUT /run": RouteTypes("Stores a packed run", int, bytes, ("uid",), ("replace",)),
    "PUT /runs": RouteTypes("Stores packed runs", int, bytes, optional=("replace",)),
    "DELETE /run": RouteTypes("Removes a run", bool, parameters=("id",)),
    "PUT /annotation": RouteTypes("Sets or removes a run's annotation", bool, str | None, ("id",)),
    "GET /baselines": RouteTypes("Baseline → run", dict[str, str]),
    "PUT /baseline": RouteTypes("Makes a run a baseline", bool, parameters=("name", "id")),
    "DELETE /baseline": RouteTypes("Removes a baseline", bool, parameters=("name",)),
    "GET /duplicates": RouteTypes("Runs that are there twice", list[str]),
    "GET /problems": RouteTypes("What is wrong with the store", list[str]),
    "POST /migrate": RouteTypes("Upgrades the store", bool),
}

"""The pages over HTTP: who is signed in, forms that write, and the headers that keep a page to itself."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from benchwright.core.errors import InvalidInput, StoreTrouble
from benchwright.report.document import Column, Field, table_of, word
from benchwright.report.html.pages import policy_of
from benchwright.server.pages.frame import Archive, Asked, FormField, PageBlock, WriteForm, page, time_words
from benchwright.server.pages.views import ITEM_VIEWS, VIEWS, ItemView, PageView
from benchwright.server.sessions import COOKIE, AuditedWrite, AuditLog, BrowserSession, SessionFile
from benchwright.server.settings import ServerSettings
from benchwright.server.tokens import Scope, Token, TokenFile
from benchwright.store.run_document import plain

_MOST_FORM = 64 << 10
_MOST_AUDITED = 200
_LOG = logging.getLogger("benchwright.server")
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store"}
_NO_ENTRY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class SignedOut(Exception):
    """The page is for those who have signed in."""


class Forbidden(Exception):
    """Words for the user."""


class PageRoutes:
    """Pages of one archive."""

    def __init__(self, archive: Archive, tokens: TokenFile, settings: ServerSettings) -> None:
        self._archive = archive
        self._tokens = tokens
        self._settings = settings
        folder = tokens.path.parent
        self._sessions = SessionFile(folder)
        self.audit = AuditLog(folder)

    def routes(self) -> list[Route]:
        made = [Route(path, self._answering(self._shown(view)), methods=["GET"]) for path, view in VIEWS.items()]
        for path, view in ITEM_VIEWS.items():
            made.append(Route(f"{path}{{item:path}}", self._answering(self._shown_item(view)), methods=["GET"]))
        made.append(Route("/changes/{item}", self._answering(self._say), methods=["POST"]))
        made.append(Route("/audit", self._answering(self._audited), methods=["GET"]))
        made.append(Route("/sign-in", self._answering(self._sign_in), methods=["GET", "POST"]))
        made.append(Route("/sign-out", self._answering(self._sign_out), methods=["POST"]))
        return made

    def _answering(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        @functools.wraps(answer)
        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except SignedOut:
                there = _link(request)("/sign-in", next=_here(request))
                return RedirectResponse(there, 303, _HEADERS | {"Content-Security-Policy": _NO_ENTRY})
            except Forbidden as error:
                return await self._trouble(request, 403, "Not allowed", str(error))
            except InvalidInput as error:
                words = f"{error.what}; {error.remedy}" if error.remedy else error.what
                return await self._trouble(request, 404, "Not found", words)
            except StoreTrouble as error:
                return await self._trouble(request, 503, "The store cannot be used now", error.what)

        return answered

    async def _trouble(self, request: Request, status: int, heading: str, words: str) -> Response:
        session = await run_in_threadpool(self._session, request)
        asked = self._asked(request, session)
        return _html(page(self._archive, asked, heading, [PageBlock(about=[words])]), status)

    def _seen(self, request: Request, session: BrowserSession | None) -> Archive:
        """The archive as one project sees it: the token's, unless the request names another."""
        own = self._settings.project if session is None else session.token.project
        return self._archive.of_project(_named_project(request) or own)

    def _shown(self, view: PageView) -> Callable[[Request], Awaitable[Response]]:
        async def shown(request: Request) -> Response:
            def made() -> str:
                session = self._reader(request)
                return view(self._seen(request, session), self._asked(request, session))

            return _html(await run_in_threadpool(made))

        return shown

    def _shown_item(self, view: ItemView) -> Callable[[Request], Awaitable[Response]]:
        async def shown(request: Request) -> Response:
            def made() -> str:
                session = self._reader(request)
                asked = self._asked(request, session)
                return view(self._seen(request, session), asked, plain(request.path_params["item"]))

            return _html(await run_in_threadpool(made))

        return shown

    def _session(self, request: Request) -> BrowserSession | None:
        return self._sessions.of(request.cookies.get(COOKIE, ""), self._tokens)

    def _reader(self, request: Request, scope: Scope = Scope.READ) -> BrowserSession | None:
        """Who is signed in; None for anybody where the server is public. SignedOut or Forbidden for others."""
        session = self._session(request)
        named = _named_project(request)
        if session is None:
            if self._settings.public and scope is Scope.READ and named in ("", self._settings.project):
                return None
            raise SignedOut
        self.check_token(session.token, scope, named or session.token.project)
        return session

    def check_token(self, token: Token, scope: Scope, project: str) -> None:
        if not token.may(token.scope, project):
            raise Forbidden(f"the token '{token.name}' is for another project")
        if token.scope < scope:
            raise Forbidden(f"the token '{token.name}' may only {token.scope.word}; this needs {scope.word}")

    def _asked(self, request: Request, session: BrowserSession | None) -> Asked:
        writes = session is not None and session.token.scope >= Scope.WRITE
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        scheme = "https" if self._settings.https else "http"
        return Asked(
            link=_link(request),
            parameters={plain(key): plain(value) for key, value in request.query_params.items()},
            path=path,
            origin=f"{scheme}://{_host(request)}" if _host(request) else "",
            who="sign in" if session is None else session.token.name,
            csrf=session.csrf if session is not None and writes else "",
        )

    async def _writer(self, request: Request, scope: Scope) -> tuple[BrowserSession, dict[str, str]]:
        """Who sends a form, and what is in it. Forbidden unless it came from a page of ours."""
        form = await _form(request)
        session = await run_in_threadpool(self._reader, request, scope)
        if session is None:
            raise SignedOut
        if not session.is_ours(form) or not _is_same_site(request):
            raise Forbidden("the form did not come from a page of this server; open the page again")
        return session, form

    async def _say(self, request: Request) -> Response:
        session, form = await self._writer(request, Scope.WRITE)
        item = request.path_params["item"]
        if not item.isascii() or not item.isdigit() or len(item) > 14:
            raise InvalidInput("there is no such change", where="changes", remedy="see the list")

        def kept() -> None:
            texts = (plain(form.get(name, "").strip()) for name in ("state", "owner", "note"))
            seen = self._seen(request, session)
            seen.book.say(int(item), *texts)
            self.audit.note(session.token.name, f"change {item}: {form.get('state', '')}", seen.store.project)

        await run_in_threadpool(kept)
        _LOG.info("change %s by %r", item, session.token.name)
        return _see(_link(request)("/changes/", item=item))

    async def _audited(self, request: Request) -> Response:
        def made() -> str:
            session = self._reader(request, Scope.ADMIN)
            seen = self._seen(request, session)
            fields: list[Field[AuditedWrite]] = [
                Field(Column("when (UTC)"), lambda w: word(time_words(w.at))),
                Field(Column("token"), lambda w: word(w.token)),
                Field(Column("what"), lambda w: word(w.action)),
            ]
            table = table_of(fields, self.audit.newest(_MOST_AUDITED, seen.store.project))
            about = [f"The newest {_MOST_AUDITED} writes."]
            blocks = [PageBlock(table=table, empty="Nothing was written yet.")]
            return page(seen, self._asked(request, session), "Who wrote what", blocks, about=about)

        return _html(await run_in_threadpool(made))

    async def _sign_in(self, request: Request) -> Response:
        """A token in the address or in the form becomes a cookie, and leaves the address."""
        form = await _form(request) if request.method == "POST" else dict(request.query_params)
        link = _link(request)
        if request.method == "POST" and not _is_same_site(request):
            raise Forbidden("the form did not come from a page of this server; open the page again")
        secret, wanted = form.get("token", "").strip(), form.get("next", "")
        token = await run_in_threadpool(self._tokens.of, secret) if secret else None
        if token is not None:
            self.check_token(token, Scope.READ, token.project)
            cookie = await run_in_threadpool(self._sessions.begin, token)
            answer = _see(wanted if _is_local(wanted) else link("/"))
            path = request.scope.get("root_path", "") or "/"
            answer.set_cookie(COOKIE, cookie, path=path, httponly=True, samesite="lax", secure=self._settings.https)
            return answer
        session = await run_in_threadpool(self._session, request)
        words = ["It does not know the token, or it has expired."] if secret else []
        asked = self._asked(request, session)
        fields = [FormField("token", "Token", kind="password"), FormField("next", "", wanted, kind="hidden")]
        how = "Ask for one, made on the server by: benchwright token create NAME"
        blocks = [PageBlock(about=[*words, how], form=WriteForm(link("/sign-in"), fields, "Sign in"))]
        if session is not None:
            out = WriteForm(link("/sign-out"), [FormField("csrf", "", session.csrf, kind="hidden")], "Sign out")
            blocks = [
                PageBlock(about=[f"Signed in as {session.token.name}: may {session.token.scope.word}."], form=out)
            ]
            blocks += (
                [PageBlock(links=[("who wrote what", link("/audit"))])] if session.token.scope >= Scope.ADMIN else []
            )
        shown = await run_in_threadpool(page, self._archive, asked, "Sign in", blocks)
        return _html(shown, 401 if secret else 200)

    async def _sign_out(self, request: Request) -> Response:
        await self._writer(request, Scope.READ)
        await run_in_threadpool(self._sessions.end, request.cookies.get(COOKIE, ""))
        answer = _see(_link(request)("/sign-in"))
        answer.delete_cookie(COOKIE, path=request.scope.get("root_path", "") or "/")
        return answer


def _named_project(request: Request) -> str:
    return plain(request.query_params.get("project", "")).strip()


def _link(request: Request) -> Callable[..., str]:
    root = request.scope.get("root_path", "")
    project = _named_project(request)

    def link(path: str, /, item: str = "", **parameters: object) -> str:
        parameters = {**parameters, "project": project}
        query = urlencode({key: plain(str(value)) for key, value in parameters.items() if value not in (None, "")})
        return f"{root}{path}{quote(plain(item), safe='')}" + (f"?{query}" if query else "")

    return link


def _here(request: Request) -> str:
    query = request.url.query
    return request.scope["path"] + (f"?{query}" if query else "") if request.method == "GET" else ""


def _is_local(address: str) -> bool:
    """Whether it is a page of this server: a redirect leads nowhere else."""
    return (
        address.startswith("/")
        and not address.startswith(("//", "/\\"))
        and address.isprintable()
        and "\\" not in address
    )


def _host(request: Request) -> str:
    host = request.headers.get("host", "")
    return host if host.isascii() and all(c.isalnum() or c in ".-:[]" for c in host) else ""


def _is_same_site(request: Request) -> bool:
    """Browsers say where a form came from."""
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == _host(request)
    except ValueError:  # no address
        return False


async def _form(request: Request) -> dict[str, str]:
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_FORM:
                raise InvalidInput("the form is too large", where="form", remedy="write less")
    except ClientDisconnect:
        raise InvalidInput("the form was cut off", where="form", remedy="send it again") from None
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50))
    except ValueError:
        raise InvalidInput("the form has too many fields", where="form", remedy="use the page's own") from None


def _see(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303, _HEADERS | {"Content-Security-Policy": _NO_ENTRY})


def _html(text: str, status: int = 200) -> Response:
    policy = f"{policy_of(text)}; frame-ancestors 'none'"
    content = text.encode("utf-8", "replace")
    return Response(content, status, _HEADERS | {"Content-Security-Policy": policy}, media_type="text/html")

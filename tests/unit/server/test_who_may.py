"""Every route × everybody who may ask, on a server that is public and on one that is not. Nothing is written without a token.

Also requests that no browser and no client of ours makes. The application is called in this process: an exception that it does not
handle fails the test.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from shared_runs import shared_runs
from starlette.testclient import TestClient
from stored_runs import rich_run

from benchwright.core.aggregates import aggregate
from benchwright.core.errors import InvalidInput
from benchwright.server.app import ROUTES, ServedStore, foreign_routes
from benchwright.server.pages.views import ITEM_VIEWS, VIEWS
from benchwright.server.sessions import COOKIE
from benchwright.server.settings import ServerSettings
from benchwright.server.tokens import Scope, TokenFile
from benchwright.store.base import RunFilter, StoreEntry, SummaryFilter
from benchwright.store.http_store import API
from benchwright.store.sql_store import open_store
from benchwright.store.transfer import packed_entry

NOBODY, STALE = "nobody", "a token that is none"
SCOPES = {scope.word: scope for scope in Scope}
WHO = [NOBODY, STALE, *SCOPES]
OTHER = "other"  # another project, with a token of each scope: `other read`…
OTHERS = {f"{OTHER} {word}": scope for word, scope in SCOPES.items()}
PUBLIC = pytest.mark.parametrize("public", [False, True], ids=["with tokens", "public"])


class Asked(NamedTuple):
    """A request that would be done if it were allowed."""

    method: str
    path: str
    needs: Scope | None  # None: anybody
    body: bytes | None = None
    headers: dict[str, str] = {}
    is_page: bool = False

    @property
    def name(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


class Office:
    """A server with runs, and everybody who may ask it for something."""

    def __init__(self, folder: Path, *, public: bool) -> None:
        self.public = public
        self.tokens = TokenFile(folder)
        self.store = open_store(str(folder / "store.db"), aggregate=aggregate)
        self.store.ingest_all([StoreEntry(run=each, digest="1") for each in shared_runs(days=25)])
        self.served = ServedStore(self.store, self.tokens, folder, ServerSettings(public=public))
        self.served.book.examine_all(self.store)
        self.uid = self.store.runs(RunFilter(), limit=1)[0].uid
        self.store.set_baseline("main", self.uid)
        self.change = self.served.book.since(0.0)[0].key
        self.secrets = {word: self.tokens.create(word, scope) for word, scope in SCOPES.items()}
        self.secrets |= {NOBODY: "", STALE: "bw_" + "x" * 43}
        self.secrets |= {who: self.tokens.create(who, scope, project=OTHER) for who, scope in OTHERS.items()}
        self.other = self.store.of_project(OTHER)
        self.other.ingest(replace(rich_run(), id="theirs.1", uid="theirs", name="theirs"), digest="1")
        self.other.set_baseline("main", "theirs")
        self.client = TestClient(self.served.app(), follow_redirects=False)
        known = {name: self.tokens.of(secret) for name, secret in self.secrets.items()}
        self.cookies = {name: self.served.pages._sessions.begin(token) for name, token in known.items() if token}

    def ask(self, asked: Asked, who: str, project: str = "") -> Any:
        headers = dict(asked.headers)
        if project:
            asked = asked._replace(path=f"{asked.path}{'&' if '?' in asked.path else '?'}project={project}")
        if asked.is_page:
            headers |= {"Cookie": f"{COOKIE}={self.cookies.get(who, 'x')}"} if who != NOBODY else {}
        elif self.secrets[who]:
            headers["Authorization"] = f"Bearer {self.secrets[who]}"
        return self.client.request(asked.method, asked.path, content=asked.body, headers=headers)

    def held(self) -> str:
        """All that a request could change."""
        changes = [(c.key, c.state, c.owner, c.note) for c in self.served.book.since(0.0)]
        runs = [(row.uid, row.annotation) for row in self.store.runs(RunFilter(), limit=None)]
        audit = len(self.served.pages.audit.newest(10_000))
        return repr((self.store.digests(), self.store.baselines(), changes, sorted(runs), audit))

    def asked(self) -> list[Asked]:
        """One request for every route."""
        run = b"".join(packed_entry(StoreEntry(run=rich_run(), digest="1")))
        digest = f"sha-256=:{base64.b64encode(hashlib.sha256(run).digest()).decode()}:"
        uid = quote(self.uid)
        query = {
            "GET /digests": "",
            "GET /logs": f"id={uid}",
            "GET /run": f"id={uid}",
            "DELETE /run": f"id={uid}",
            "PUT /run": "uid=rich.1",
            "PUT /annotation": f"id={uid}",
            "PUT /baseline": f"name=new&id={uid}",
            "DELETE /baseline": "name=main",
        }
        where = b'{"where": {}}'
        body = {"PUT /run": run, "PUT /runs": run, "PUT /annotation": b'"seen"', "POST /load": b"[]"}
        body |= {"POST /find": where, "POST /series": where, "POST /summaries": where}
        made = [
            Asked(m, f"{API}{p}?{query.get(f'{m} {p}', '')}", scope, body.get(f"{m} {p}"), {"Content-Digest": digest})
            for m, p, scope, _ in ROUTES
        ]
        series = self.store.series(SummaryFilter(headline=True))[0].id
        items = {"/runs/": self.uid, "/history/": series, "/changes/": str(self.change)}
        pages = [*VIEWS, *(path + quote(items[path], safe="") for path in ITEM_VIEWS)]
        made += [Asked("GET", path, Scope.READ, is_page=True) for path in pages]
        made.append(Asked("GET", "/audit", Scope.ADMIN, is_page=True))
        made += [Asked("GET", path, None, is_page=True) for path in ("/sign-in", "/healthz", "/openapi.json")]
        return made


@pytest.fixture(scope="module")
def offices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Office]]:
    made = {public: Office(tmp_path_factory.mktemp("office"), public=public) for public in (False, True)}
    yield made
    for office in made.values():
        office.store.close()


def may(office: Office, asked: Asked, who: str) -> bool:
    """The rule, in words: who has the scope; and anybody who names no token may read what is public."""
    if asked.needs is None:
        return True
    if who in SCOPES:
        return SCOPES[who] >= asked.needs
    nameless = who == NOBODY or (asked.is_page and who == STALE)  # a cookie that means nothing is none
    return nameless and office.public and asked.needs is Scope.READ


@PUBLIC
@pytest.mark.parametrize("who", WHO)
def test_everybody_may_do_what_the_table_says_and_nothing_else(
    offices: dict[bool, Office], who: str, public: bool
) -> None:
    office = offices[public]
    for asked in office.asked():
        allowed = may(office, asked, who)
        if allowed and asked.needs is not None and asked.needs > Scope.READ and not asked.is_page:
            continue  # tried below, in an order that works
        before = office.held()
        answer = office.ask(asked, who)
        assert office.held() == before, asked.name
        if allowed:
            assert answer.status_code == 200, (asked.name, answer.text)
        elif asked.is_page and who in (NOBODY, STALE):
            assert (answer.status_code, answer.headers["location"].startswith("/sign-in")) == (303, True), asked.name
        else:
            assert answer.status_code == (401 if who in (NOBODY, STALE) else 403), (asked.name, answer.text)


@PUBLIC
@pytest.mark.parametrize("who", OTHERS)
def test_a_token_of_another_project_neither_sees_nor_changes_this_one(
    offices: dict[bool, Office], who: str, public: bool
) -> None:
    office = offices[public]
    for asked in office.asked():
        if asked.needs is None or asked.name == f"POST {API}/migrate":
            continue
        if asked.name in (f"PUT {API}/run", f"PUT {API}/runs", f"DELETE {API}/baseline"):
            continue  # they have those, too: below
        before = office.held()
        answer = office.ask(asked, who)
        assert office.held() == before, asked.name
        if OTHERS[who] < asked.needs:
            assert answer.status_code == 403, (asked.name, answer.text)
            continue
        about_ours = office.uid in unquote(asked.path) or "/history/" in asked.path or "/changes/" in asked.path
        if about_ours:
            assert answer.status_code in (200, 404, 422), (asked.name, answer.text)
            assert answer.status_code != 200 or answer.text == "false", (asked.name, answer.text)
        else:
            assert answer.status_code == 200, (asked.name, answer.text)
            assert office.uid not in answer.text or asked.path == "/audit", asked.name  # its own try to delete it


@PUBLIC
@pytest.mark.parametrize("who", [NOBODY, STALE, *SCOPES, *OTHERS])
def test_only_an_admin_may_name_another_project(offices: dict[bool, Office], who: str, public: bool) -> None:
    office = offices[public]
    own = OTHER if who in OTHERS else "main"
    named = "main" if own == OTHER else OTHER
    for asked in office.asked():
        if asked.needs is not Scope.READ or asked.path.startswith(f"{API}/version"):
            continue
        about_ours = asked.path.partition("?")[0] not in (*VIEWS, f"{API}/digests", f"{API}/find", f"{API}/standing")
        if about_ours:
            continue
        answer = office.ask(asked, who, named)
        if who.endswith("admin"):
            assert answer.status_code == 200, (asked.name, answer.text)
            if asked.path.endswith("/standing?"):
                assert ("theirs" in answer.text) == (named == OTHER)
                assert (office.uid in answer.text) == (named == "main")
        elif asked.is_page and who in (NOBODY, STALE):
            assert answer.status_code == 303, asked.name
        else:
            assert answer.status_code == (401 if who in (NOBODY, STALE) else 403), (asked.name, answer.text)
        assert office.ask(asked, who, own).status_code in ((200,) if who not in (NOBODY, STALE) else (200, 303, 401))


def test_projects_have_separate_runs_series_baselines_and_changes(tmp_path: Path) -> None:
    office = Office(tmp_path, public=False)
    assert office.store.projects() == ["main", OTHER]
    assert office.other.digests() == {"theirs": "1"}
    assert office.other.baselines() == {"main": "theirs"}
    assert office.store.baselines() == {"main": office.uid}
    assert office.served.book.of_project(OTHER).since(0.0) == []
    ours = {series.id for series in office.store.series(SummaryFilter())}
    theirs = {series.id for series in office.other.series(SummaryFilter())}
    assert ours
    assert theirs
    assert not ours & theirs
    assert office.other.summaries(SummaryFilter(series=tuple(ours))) == []
    assert [run.id for run in office.other.load_all([office.uid, "theirs"])] == ["theirs.1"]
    assert office.store.comparables(["theirs"]) == []
    run = next(iter(office.store.load_all([office.uid])))
    with pytest.raises(InvalidInput, match="is in another project"):
        office.other.ingest(run, digest="forged")
    assert not office.other.delete(office.uid)
    assert office.other.remove_baseline("main")
    assert office.store.baselines() == {"main": office.uid}
    assert office.store.check() == office.other.check() == []
    office.store.close()


@PUBLIC
def test_those_who_may_write_do(tmp_path: Path, public: bool) -> None:
    """So that the table above refuses requests that would have worked."""
    office = Office(tmp_path, public=public)
    writes = [a for a in office.asked() if a.needs is not None and a.needs > Scope.READ and not a.is_page]
    changing = {"PUT /run", "PUT /annotation", "PUT /baseline", "DELETE /baseline", "DELETE /run"}
    for asked in sorted(writes, key=lambda a: a.method == "DELETE"):
        before = office.held()
        answer = office.ask(asked, "admin" if asked.needs is Scope.ADMIN else "write")
        assert answer.status_code == 200, (asked.name, answer.text)
        if asked.name.replace(API, "") in changing:
            assert office.held() != before, asked.name
    office.store.close()


@PUBLIC
@pytest.mark.parametrize("who", WHO)
def test_a_form_is_taken_only_from_those_who_may_write(offices: dict[bool, Office], who: str, public: bool) -> None:
    office = offices[public]
    page = office.ask(Asked("GET", f"/changes/{office.change}", Scope.READ, is_page=True), who).text
    csrf = re.findall(r'name="csrf" value="([^"]+)"', page)
    assert bool(csrf) == (who in ("write", "admin"))
    form = urlencode({"csrf": csrf[0] if csrf else "", "state": "explained", "owner": who, "note": str(public)})
    before = office.held()
    sent = Asked("POST", f"/changes/{office.change}", Scope.WRITE, form.encode(), is_page=True)
    status = office.ask(sent, who).status_code
    assert (office.held() != before) == bool(csrf)
    assert status == (303 if csrf or who in (NOBODY, STALE) else 403)


@PUBLIC
@pytest.mark.parametrize("who", [NOBODY, STALE, "other read", "read"])
def test_what_another_tool_sends_is_taken_only_with_a_token_that_may_write(
    offices: dict[bool, Office], who: str, public: bool
) -> None:
    office = offices[public]
    before = office.held()
    for route in foreign_routes():
        body = json.dumps({"access_token": office.secrets[who], "logs": []}).encode()
        assert office.client.post(route.path, content=body).status_code in (400, 401, 403)
    assert office.held() == before


# Requests that nobody makes by accident.

ODD = st.text(max_size=12) | st.sampled_from(
    [
        "http://[",
        "http://[::1",
        "[",
        "²",
        "9" * 5000,
        "-1",
        "\x00",
        "\ud800",
        "%",
        "%zz",
        "../x",
        "a" * 9000,
        "1e999",
        "nan",
    ]
)
HEADERS = ["Origin", "Host", "Cookie", "Content-Length", "Content-Type", "Authorization", "Content-Digest", "Range"]
PARAMETERS = ["since", "text", "from", "to", "a", "b", "metric", "machine", "page", "next", "token", "status", "label"]


def status_of_odd(office: Office, data: st.DataObject) -> int:
    asked = data.draw(st.sampled_from(office.asked()))
    path = asked.path.partition("?")[0] + data.draw(st.just("") | ODD.map(quote_all))
    names = data.draw(st.lists(st.sampled_from(PARAMETERS), max_size=4))
    query = "&".join(f"{name}={quote_all(data.draw(ODD))}" for name in names)
    odd = data.draw(st.dictionaries(st.sampled_from(HEADERS), ODD, max_size=2))
    headers = {name: plain.encode("utf-8", "replace") for name, text in odd.items() if (plain := sendable(text))}
    if asked.is_page and "Cookie" not in headers:
        headers["Cookie"] = f"{COOKIE}={office.cookies['admin']}".encode()
    elif not asked.is_page and "Authorization" not in headers:
        headers["Authorization"] = f"Bearer {office.secrets['read']}".encode()
    method = data.draw(st.sampled_from([asked.method, "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]))
    body = data.draw(st.none() | st.binary(max_size=30) | ODD.map(lambda text: text.encode("utf-8", "replace")))
    return office.client.request(method, f"{path}?{query}", content=body, headers=headers).status_code


def sendable(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and not c.isspace())


def quote_all(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"))


def settings_for(examples: int) -> settings:
    return settings(deadline=None, database=None, max_examples=examples, suppress_health_check=list(HealthCheck))


@settings_for(60)
@given(data=st.data())
def test_whatever_is_asked_is_answered(offices: dict[bool, Office], data: st.DataObject) -> None:
    assert status_of_odd(offices[True], data) < 500


@pytest.mark.long
@settings_for(4000)
@given(data=st.data())
def test_whatever_is_asked_often_is_answered(offices: dict[bool, Office], data: st.DataObject) -> None:
    assert status_of_odd(offices[True], data) < 500


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/changes/1"])
@pytest.mark.parametrize("origin", ["http://[", "null", "²", "http://x:99999999", "//"])
def test_an_origin_that_is_none_is_refused(offices: dict[bool, Office], path: str, origin: str) -> None:
    headers = {"Origin": origin.encode(), "Cookie": f"{COOKIE}={offices[False].cookies['write']}".encode()}
    assert offices[False].client.post(path, content=b"csrf=x", headers=headers).status_code == 403


@pytest.mark.parametrize("length", ["²", "9" * 5000, "-1", "x", ""], ids=["power", "digits", "less", "word", "none"])
def test_a_length_that_is_none_is_no_failure(offices: dict[bool, Office], length: str) -> None:
    headers = {"Authorization": f"Bearer {offices[False].secrets['write']}", "Content-Length": length.encode()}
    assert offices[False].client.put(f"{API}/runs", content=b"x", headers=headers).status_code in (400, 413)

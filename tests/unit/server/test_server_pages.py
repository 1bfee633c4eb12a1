"""The server's pages over a real connection: who sees them, what they say, and text that would break a page."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest
from builders import launch, measurement
from served_stores import ServedStores, store_behind
from shared_runs import FAILING, REGRESSED, STEADY, shared_runs
from sqlalchemy import event
from stored_runs import result, run

from benchwright.core.aggregates import aggregate
from benchwright.regress.notify.notice import Notice
from benchwright.results.compare import compare_runs
from benchwright.server.app import ServedStore
from benchwright.server.change_book import ChangeBook
from benchwright.server.page_routes import PageRoutes
from benchwright.server.pages.compare_page import _histories
from benchwright.server.pages.frame import Archive
from benchwright.server.pages.views import ITEM_VIEWS, VIEWS
from benchwright.server.sessions import COOKIE
from benchwright.server.tokens import Scope, TokenFile
from benchwright.store.base import RunFilter, StoreEntry, SummaryFilter
from benchwright.store.http_store import checked_url
from benchwright.store.sql_store import open_store

HOSTILE = "</script><script>alert(1)</script>\x00\ud800\u202e'\"&<img src=x onerror=alert(2)> ../x"
MOST_QUERIES = 8


class Answer(NamedTuple):
    status: int
    text: str
    headers: http.client.HTTPMessage

    @property
    def words(self) -> str:
        return " ".join(re.sub(r"<[^>]*>", " ", self.text.partition("<main>")[2]).split())


Get = Callable[..., Answer]


class Served(NamedTuple):
    stores: ServedStores
    url: str
    sessions: dict[str, str]  # by scope
    csrf: dict[str, str]

    @property
    def root(self) -> str:
        return checked_url(self.url).path

    def ask(self, method: str, path: str, scope: str = "read", body: str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.stores.port, timeout=60)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if scope:
            given["Cookie"] = f"{COOKIE}={self.sessions[scope]}"
        if body is not None:
            given["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, self.root + path, body, given)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode(), answer.headers)
        finally:
            connection.close()

    def get(self, path: str, scope: str = "read") -> Answer:
        return self.ask("GET", path, scope)

    def paths(self) -> list[str]:
        """Every page there is one of."""
        store = store_behind(self.url)
        newest = store.runs(RunFilter(), limit=1)[0]
        series = store.series(SummaryFilter(headline=True))[0]
        changes = ChangeBook(store.file_path.parent).since(0.0)  # type: ignore[union-attr]
        items = {"/runs/": newest.uid, "/history/": series.id, "/changes/": str(changes[0].key) if changes else ""}
        return [*VIEWS, *(path + quote(item, safe="") for path, item in items.items() if item)]


def serve(stores: ServedStores, folder: Path, **shape: str) -> Served:
    folder.mkdir()
    url = stores.serve(folder / "store.db")
    served = Served(stores, url, {}, {})
    for scope in Scope:
        name = f"{folder.name} {scope.word}"
        secret = stores.tokens.create(name, scope)
        answer = served.ask("GET", f"/sign-in?token={secret}", "")
        assert answer.status == 303
        served.sessions[scope.word] = re.search(rf"{COOKIE}=([^;]+)", answer.headers["Set-Cookie"])[1]  # type: ignore[index]
    store = store_behind(url)
    store.ingest_all([StoreEntry(run=each, digest="1") for each in shared_runs(**shape)])  # type: ignore[arg-type]
    ChangeBook(folder).examine_all(store)
    return served


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStores]:
    with ServedStores(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture(scope="module")
def team(stores: ServedStores, tmp_path_factory: pytest.TempPathFactory) -> Served:
    return serve(stores, tmp_path_factory.mktemp("pages") / "team")


@pytest.fixture(scope="module")
def hostile(stores: ServedStores, tmp_path_factory: pytest.TempPathFactory) -> Served:
    return serve(stores, tmp_path_factory.mktemp("pages") / "hostile", hostile=HOSTILE)


def change_of(team: Served) -> int:
    book = ChangeBook(store_behind(team.url).file_path.parent)  # type: ignore[union-attr]
    return next(change.key for change in book.since(0.0) if change.verdict == "regressed")


# Who sees them.


def test_a_link_with_a_token_becomes_a_session_and_the_token_leaves_the_address(team: Served) -> None:
    secret = team.stores.tokens.create("link", Scope.READ)
    answer = team.ask("GET", f"/sign-in?token={secret}&next={team.root}/runs?text=a", "")
    assert (answer.status, answer.headers["Location"]) == (303, f"{team.root}/runs?text=a")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert secret not in cookie + answer.headers["Location"] + answer.text


@pytest.mark.parametrize("where", ["//evil.example", "https://evil.example", "/\\evil", "javascript:alert(1)", "/a\nb"])
def test_signing_in_leads_nowhere_else(team: Served, where: str) -> None:
    secret = team.stores.tokens.create(f"to {where!r}", Scope.READ)
    answer = team.ask("GET", f"/sign-in?{urlencode({'token': secret, 'next': where})}", "")
    assert answer.headers["Location"] == f"{team.root}/"


def test_every_page_needs_a_session_and_reading_is_enough(team: Served) -> None:
    for path in team.paths():
        refused = team.get(path, "")
        assert (refused.status, refused.headers["Location"].partition("?")[0]) == (303, f"{team.root}/sign-in"), path
        for scope in Scope:
            answer = team.get(path, scope.word)
            assert answer.status == 200, (path, scope, answer.text[:500])
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["Cache-Control"] == "no-store"


def test_a_revoked_token_ends_its_sessions(team: Served) -> None:
    secret = team.stores.tokens.create("brief", Scope.READ)
    answer = team.ask("GET", f"/sign-in?token={secret}", "")
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    assert team.ask("GET", "/runs", "", Cookie=cookie).status == 200
    team.stores.tokens.revoke("brief")
    assert team.ask("GET", "/runs", "", Cookie=cookie).status == 303


def test_a_session_ends_when_one_signs_out(team: Served) -> None:
    secret = team.stores.tokens.create("out", Scope.READ)
    cookie = team.ask("GET", f"/sign-in?token={secret}", "").headers["Set-Cookie"].partition(";")[0]
    page = team.ask("GET", "/sign-in", "", Cookie=cookie).text
    csrf = re.findall(r'name="csrf" value="([^"]+)"', page)[0]
    assert team.ask("POST", "/sign-out", "", body=urlencode({"csrf": "x"}), Cookie=cookie).status == 403
    assert team.ask("POST", "/sign-out", "", body=urlencode({"csrf": csrf}), Cookie=cookie).status == 303
    assert team.ask("GET", "/runs", "", Cookie=cookie).status == 303


@pytest.mark.parametrize("token", ["", "bw_x", "bw_" + "é" * 40, "x" * 5000, "'; DROP TABLE tokens; --"])
def test_a_token_that_is_none_signs_nobody_in(team: Served, token: str) -> None:
    for answer in (
        team.ask("POST", "/sign-in", "", body=urlencode({"token": token})),
        team.ask("GET", f"/sign-in?{urlencode({'token': token})}", ""),
    ):
        assert answer.status in (200, 401)
        assert "Set-Cookie" not in answer.headers


def test_a_token_of_another_project_may_not_name_this_one(team: Served) -> None:
    secret = team.stores.tokens.create("theirs", Scope.WRITE, project="other")
    assert team.ask("GET", f"/sign-in?token={secret}", "").status == 303
    assert team.ask("GET", "/api/v1/digests", "", Authorization=f"Bearer {secret}").text == "{}"
    answer = team.ask("GET", "/api/v1/digests?project=main", "", Authorization=f"Bearer {secret}")
    assert answer.status == 403
    assert "is for the project 'other', not 'main'" in answer.text


# Forms that write.


def test_a_change_has_a_state_an_owner_and_a_note_that_stay(team: Served) -> None:
    key = change_of(team)
    page = team.get(f"/changes/{key}", "write").text
    form = {"csrf": re.findall(r'name="csrf" value="([^"]+)"', page)[0], "state": "explained", "owner": "Zoë"}
    done = team.ask("POST", f"/changes/{key}", "write", urlencode(form | {"note": "<b>fp8</b>"}))
    assert (done.status, done.headers["Location"]) == (303, f"{team.root}/changes/{key}")
    folder = store_behind(team.url).file_path.parent  # type: ignore[union-attr]
    ChangeBook(folder).examine(store_behind(team.url), [ChangeBook(folder).one(key).series])  # type: ignore[union-attr]
    words = team.get(f"/changes/{key}").text
    assert "explained" in words
    assert "Zoë" in words
    assert "&lt;b&gt;fp8&lt;/b&gt;" in words
    assert f"change {key}: explained" in team.get("/audit", "admin").words


def test_a_form_from_elsewhere_writes_nothing(team: Served) -> None:
    key = change_of(team)
    page = team.get(f"/changes/{key}", "write").text
    form = {"csrf": re.findall(r'name="csrf" value="([^"]+)"', page)[0], "state": "fixed", "owner": "x", "note": "y"}
    of_reader = 'name="csrf"'
    assert of_reader not in team.get(f"/changes/{key}", "read").text
    sent = [
        team.ask("POST", f"/changes/{key}", "write", urlencode(form | {"csrf": ""})),
        team.ask("POST", f"/changes/{key}", "write", urlencode(form | {"csrf": "é"})),
        team.ask("POST", f"/changes/{key}", "admin", urlencode(form)),  # the secret of another session
        team.ask("POST", f"/changes/{key}", "write", urlencode(form), Origin="https://evil.example"),
        team.ask("POST", f"/changes/{key}", "write", urlencode(form), Origin="null"),
        team.ask("POST", f"/changes/{key}", "read", urlencode(form)),
    ]
    assert [answer.status for answer in sent] == [403] * 6
    assert team.ask("POST", f"/changes/{key}", "", urlencode(form)).status == 303  # to sign in
    folder = store_behind(team.url).file_path.parent  # type: ignore[union-attr]
    assert ChangeBook(folder).one(key).state != "fixed"  # type: ignore[union-attr]


@pytest.mark.parametrize("item", ["0", "999999999999", "-1", "x", "1e3", "%00", "1%20OR%201=1"])
def test_what_is_not_there_is_told(team: Served, item: str) -> None:
    for path in ITEM_VIEWS:
        answer = team.get(path + item)
        assert answer.status == 404, path
        assert answer.headers["Content-Type"].startswith("text/html")


def test_writes_are_seen_by_admins_only(team: Served) -> None:
    assert team.get("/audit", "write").status == 403
    assert team.get("/audit", "admin").status == 200


# What they say.


def test_the_overview_has_what_regressed_fails_and_is_silent(team: Served) -> None:
    words = team.get("/?since=2026-10-20").words
    regressed, failing, improved, silent = re.split(
        r"Newly failing|Improved|Unusually silent", words.partition("Runs ")[2]
    )
    assert re.search(rf"{REGRESSED} rate alpha -10\.\d %", regressed)
    assert re.search(rf"{FAILING} beta out of memory 5 2026-11-17 06:00 2026-11-12 06:00", failing)
    assert "Nothing" in improved
    assert "gamma 2026-11-08" in silent
    assert REGRESSED not in team.get("/?since=2026-11-10").words
    assert REGRESSED in team.get("/?since=24ab12").words  # the commit before
    assert REGRESSED not in team.get("/?since=26ab12").words
    assert team.get("/?since=yesterday").status == 404


def test_benchmarks_show_the_stored_value_of_every_machine_and_metric(team: Served) -> None:
    page = team.get("/benchmarks")
    newest = {s.host: s for s in store_behind(team.url).series(SummaryFilter(headline=True, benchmark=STEADY))}
    for series in newest.values():
        assert series.points[-1].value is not None
    words = page.words
    assert f"{newest['alpha'].points[-1].value:.1f} items/s" in words
    assert page.text.count('class="spark"') == 9
    energy = team.get("/benchmarks?metric=energy.item").words
    assert "items/s" not in energy
    assert " J " in energy


def test_filters_of_runs_compose_and_counts_are_exact(team: Served) -> None:
    assert "111 runs, 1 to 50 shown" in team.get("/runs").words
    assert "5 runs, newest first" in team.get("/runs?machine=beta&status=failed&text=nightly").words
    assert "3 runs, newest first" in team.get("/runs?machine=beta&status=failed&since=2026-11-15").words
    assert "0 runs" in team.get("/runs?machine=alpha&status=failed").words
    assert "40 runs" in team.get("/runs?benchmark=resnet*&machine=alpha").words
    assert "111 runs, 101 to 111 shown" in team.get("/runs?from=100").words


def test_a_run_shows_its_report_and_how_to_make_it_again(team: Served) -> None:
    page = team.get("/runs/nightly.0039.beta")
    assert "CUDA has none left" in page.text
    assert "benchwright run -- train.py --batch 64" in page.text


def test_the_folder_that_a_client_names_is_never_read(team: Served, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "x"
    (folder / "logs").mkdir(parents=True)
    for path in (folder / "b.log", folder / "logs" / "b.log", folder / "b.D0.log"):
        path.write_text("the server's own secret\n")
    store = store_behind(team.url)
    store.ingest(run("spy.1", result(launch(measurement(1.0), job="b.D0")), folder=str(folder)), digest="1")
    page = team.get("/runs/spy.1").text
    store.delete("spy.1")
    assert "own secret" not in page
    assert str(folder) not in page


def test_runs_of_two_machines_are_not_compared_and_it_says_why(team: Served) -> None:
    words = team.get("/compare?control=nightly.0039.alpha&treatment=nightly.0039.beta").words
    assert "Not comparable" in words
    assert "machine" in words
    assert not re.search("regressed|improved", words)


def test_a_comparison_has_verdicts_histories_and_a_link_for_others(team: Served) -> None:
    page = team.get("/compare?control=nightly.0010.alpha&treatment=nightly.0039.alpha")
    assert "▼ regressed" in page.words
    assert page.text.count('class="spark"') >= 3
    assert f"http://127.0.0.1:{team.stores.port}{team.root}/compare?" in page.text
    store_behind(team.url).set_baseline("main", "nightly.0010.alpha")
    assert "▼ regressed" in team.get("/compare?control=baseline:main&treatment=nightly.0039.alpha").words
    assert team.get("/compare?control=baseline:none&treatment=nightly.0039.alpha").status == 404


def test_a_comparison_draws_the_newest_stored_values_of_each_series(team: Served) -> None:
    store = store_behind(team.url)
    archive = Archive(store, ChangeBook(Path("/nowhere")), "")
    (treatment,) = store.load_all(["nightly.0039.alpha"])
    (control,) = store.load_all(["nightly.0010.alpha"])
    (found,) = compare_runs([control, treatment], between=None, margin=None, metrics=(), all_metrics=True, anyway=False)
    drawn = _histories(archive, treatment, found.effects)
    assert len(drawn) >= 3
    for series, values in drawn.values():
        (stored,) = store.summaries(SummaryFilter(series=(series,)), newest=20)
        assert list(values) == [point.value for point in stored.points if point.value is not None]


def test_a_changed_setting_is_a_marked_line_in_one_history(team: Served) -> None:
    series = [
        s for s in store_behind(team.url).series(SummaryFilter(benchmark=REGRESSED, metric="rate")) if s.host == "beta"
    ]
    assert len(series) == 2  # batch 32, then 64
    pages = [team.get(f"/history/{each.id}") for each in series]
    for page in pages:
        assert page.text.count('class="switch"') == 2  # in the wide and in the narrow drawing
        assert "batch 32 → 64" in page.words
        assert "40 points" in page.words
        assert not re.search("-10|regressed", page.words)


def test_machines_say_what_they_are_and_how_noisy(team: Served) -> None:
    words = team.get("/machines").words
    assert re.search(r"alpha EPYC 9654, 2 cores .* 40 2026-10-09 06:00 2026-11-17 06:00 ± 0\.\d % 40 runs", words)
    assert words.index("alpha") < words.index("gamma")  # the one that ran last comes first


def test_machines_side_by_side_have_ratios_and_no_verdict(team: Served) -> None:
    words = team.get("/machines/compare?base=alpha&price=alpha=3.6,beta=7.2").words
    assert re.search(rf"{STEADY} rate 1\.00× .*? 1\.(39|40|41)× \[1\.\d\d, 1\.\d\d\]", words)
    assert "J/item" in words
    assert "price" in words
    assert not re.search("regressed|improved|same|inconclusive", words)


def test_a_page_asks_little_of_the_store(team: Served) -> None:
    counts: dict[str, int] = {}
    store = store_behind(team.url)
    asked: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.lstrip().startswith(("SELECT", "WITH")):
            asked.append(statement)

    event.listen(store._engine, "before_cursor_execute", note)
    try:
        compared = "/compare?control=baseline:main&treatment=nightly.0039.alpha"
        store.set_baseline("main", "nightly.0010.alpha")
        for path in (
            *team.paths(),
            compared,
            "/?since=24ab12",
            "/benchmarks?metric=rate&text=bert",
            "/runs?text=a&from=50",
        ):
            asked.clear()
            assert team.get(path).status == 200
            counts[path] = len(asked)
    finally:
        event.remove(store._engine, "before_cursor_execute", note)
    assert max(counts.values()) <= MOST_QUERIES, counts


# Text that would break a page.


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts = 0
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        assert tag != "img"


def test_names_with_markup_are_only_text_on_every_page(hostile: Served) -> None:
    uid = store_behind(hostile.url).runs(RunFilter(), limit=1)[0].uid
    two = urlencode({"control": uid, "treatment": store_behind(hostile.url).runs(RunFilter(), limit=4)[3].uid})
    for path in (*hostile.paths(), f"/compare?{two}"):
        answer = hostile.get(path, "write")
        assert answer.status == 200, (path, answer.words[:300])
        assert "alert(1)" in answer.text or path == "/"
        assert "<script>alert" not in answer.text
        assert "\x00" not in answer.text
        tags = Tags(answer.text)
        assert tags.handlers == []
        assert tags.scripts <= 1 + answer.text.count('type="application/json"')


FILTERS = [
    "since",
    "until",
    "text",
    "benchmark",
    "machine",
    "status",
    "label",
    "name",
    "metric",
    "from",
    "base",
    "price",
    "control",
    "treatment",
    "verdict",
    "state",
]
TEXTS = [
    "'; DROP TABLE runs; --",
    '"><script>alert(1)</script>',
    "%00",
    "%ED%A0%80",
    "[",
    "[!",
    "*" * 50,
    "9" * 400,
    "x" * 5000,
    "-1",
    "1e400",
]


@pytest.mark.parametrize("text", TEXTS)
def test_whatever_is_asked_for_is_answered_or_refused_in_words(team: Served, text: str) -> None:
    given = text if text.startswith("%") else quote(text)
    for path in VIEWS:
        query = "&".join(f"{name}={given}" for name in FILTERS if (path, name) != ("/runs", "since"))
        answer = team.get(f"{path}?{query}")
        assert answer.status in (200, 404), (path, answer.text)
        assert "<script>alert" not in answer.text
        one_by_one = [team.get(f"{path}?{name}={given}").status for name in ("since", "text", "from", "metric")]
        assert set(one_by_one) <= {200, 404}
    assert "111 runs" in team.get("/runs").words


def test_every_route_that_writes_wants_a_form_of_ours(team: Served) -> None:
    """A new one must be named here, and tried above."""
    made = PageRoutes.routes(team_routes(team))
    writing = {route.path for route in made if "POST" in (route.methods or ())}
    assert writing == {"/changes/{item}", "/sign-in", "/sign-out"}


def team_routes(team: Served) -> PageRoutes:
    from benchwright.server.settings import ServerSettings

    store = store_behind(team.url)
    return PageRoutes(Archive(store, ChangeBook(Path("/nowhere")), ""), team.stores.tokens, ServerSettings())


def test_a_confirmed_change_is_told_once(tmp_path: Path) -> None:
    told: list[Notice] = []

    class Receiver:
        key, is_remote = "receiver", False

        def deliver(self, notice: Notice, *, timeout_s: float) -> None:
            told.append(notice)

    with open_store(str(tmp_path / "store.db"), aggregate=aggregate) as store:
        made = list(shared_runs())
        served = ServedStore(store, TokenFile(tmp_path), tmp_path, receivers=[Receiver()])
        store.ingest_all([StoreEntry(run=each, digest="1") for each in made[:60]])
        served.catch_up()
        store.ingest_all([StoreEntry(run=each, digest="1") for each in made[60:]])
        for _ in range(2):
            served.examined(["nightly.0039.alpha"]).func()
    assert [notice.title for notice in told] == ["1 change confirmed, 1 for the worse"]
    assert told[0].verdicts[0].benchmark == REGRESSED

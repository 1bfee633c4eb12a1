"""The server's routes: who may use which, and bodies that are not what they say. Over a real connection."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import logging
import re
import socket
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from builders import launch, measurement
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served_stores import ServedStores, store_behind
from stored_runs import big_run, result, rich_run, run, same

from benchwright.core.errors import InvalidInput, StoreAway, StoreTrouble
from benchwright.server.app import ROUTES
from benchwright.server.route import FOREIGN_ROUTES
from benchwright.server.tokens import Scope
from benchwright.store import transfer
from benchwright.store.base import RunFilter, StoreEntry, SummaryFilter, open_store
from benchwright.store.http_store import API, HttpStore, checked_url
from benchwright.store.transfer import MAGIC, MOST_BYTES, ArrayHead, RunHead, framed, packed_entry
from benchwright.version import __version__

anything = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
Ask = Callable[..., tuple[int, Any]]
NAMES = [f"{method} {path}" for method, path, _, _ in ROUTES]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStores]:
    with ServedStores(tmp_path_factory.mktemp("server")) as stores:
        for scope in Scope:
            SECRETS[scope.word] = stores.tokens.create(scope.word, scope)
        SECRETS["expired"] = stores.tokens.create("expired", Scope.ADMIN, timedelta(days=1), now=1000.0)
        yield stores


SECRETS: dict[str, str] = {}


@pytest.fixture
def url(served: ServedStores, tmp_path: Path) -> str:
    return served.serve(tmp_path / "store.db")


@pytest.fixture
def ask(url: str, served: ServedStores) -> Ask:
    """Status and body of an answer."""

    def asked(
        method: str, path: str, body: bytes | None = None, token: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        try:
            token = SECRETS["admin"] if token is None else token
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, checked_url(url).path + path, body, {"Authorization": f"Bearer {token}"} | given)
            answer = connection.getresponse()
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers.get("Set-Cookie") is None
            content = answer.read()
            is_json = answer.headers["Content-Type"] == "application/json"
            return answer.status, json.loads(content) if is_json and content else content
        finally:
            connection.close()

    return asked


def put(ask: Ask, body: bytes, query: str = "uid=rich.1", **headers: str) -> tuple[int, Any]:
    return ask("PUT", f"{API}/run?{query}", body, **({"Content_Digest": digest_of(body)} | headers))


def digest_of(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def body_of(entry: StoreEntry) -> bytes:
    return b"".join(packed_entry(entry))


RICH = body_of(StoreEntry(run=rich_run(), digest="1"))


@pytest.mark.parametrize("name", NAMES)
def test_every_route_wants_its_scope_and_no_less(ask: Ask, name: str) -> None:
    method, path = name.split()
    needed = next(scope for m, p, scope, _ in ROUTES if f"{m} {p}" == name)
    for secret in ("", "bw_" + "x" * 43, SECRETS["expired"], SECRETS["admin"].lower()):
        assert ask(method, API + path, token=secret)[0] == 401
    assert ask(method, API + path, Authorization="Basic " + SECRETS["admin"])[0] == 401
    for scope in Scope:
        status, said = ask(method, API + path, token=SECRETS[scope.word])
        assert (status == 403) == (scope < needed), (scope, status)
        assert status != 401
        assert status < 500, said
        if status == 403:
            assert f"may only {scope.word}; this needs {needed.word}" in said["what"]


def test_reading_changes_nothing_and_only_the_admin_deletes() -> None:
    scopes = {f"{method} {path}": scope for method, path, scope, _ in ROUTES}
    assert {name for name, scope in scopes.items() if scope is Scope.ADMIN} == {
        "DELETE /run",
        "GET /problems",
        "POST /migrate",
    }
    assert all(scope >= Scope.WRITE for name, scope in scopes.items() if name.startswith(("PUT", "DELETE")))


def test_a_revoked_token_is_refused_at_once(served: ServedStores, ask: Ask) -> None:
    secret = served.tokens.create("brief", Scope.READ)
    assert ask("GET", f"{API}/version", token=secret)[0] == 200
    served.tokens.revoke("brief")
    assert ask("GET", f"{API}/version", token=secret)[0] == 401


def test_health_needs_no_token_and_says_nothing_of_the_store(ask: Ask) -> None:
    status, said = ask("GET", "/healthz", token="")
    assert (status, said["status"]) == (200, "ok")


@pytest.mark.parametrize("path", ["/nothing", "/api/v2/version", f"{API}/../../etc/passwd", f"{API}/run/../x", "/%00"])
def test_an_unknown_address_says_which_version_is_spoken(ask: Ask, path: str) -> None:
    status, said = ask("GET", path)
    assert status == 404
    assert f"speaks {API}" in said["what"]


def test_the_same_digest_again_changes_nothing(ask: Ask) -> None:
    assert put(ask, RICH) == (200, 1)
    assert put(ask, RICH) == (200, 0)
    assert put(ask, RICH, "uid=rich.1&replace=1") == (200, 1)
    assert len(ask("POST", f"{API}/find", b'{"where": {}}')[1]) == 1


def with_head(document: bytes, *arrays: ArrayHead, tail: bytes = b"", encoding: str = "json-zlib") -> bytes:
    head = RunHead(digest="1", document_bytes=len(document), arrays=list(arrays), encoding=encoding)
    return b"".join([*framed(head), document, tail])


def one_array(count: int, packed: bytes) -> bytes:
    document = transfer.pack_document(run("rich.1", result(launch(measurement(1.0)))))
    array = ArrayHead(0, 0, 0, 0, count, len(packed), "f8-planes-zlib", transfer.checksum(packed))
    return with_head(document, array, tail=packed)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not the run that its address names"),
        (b"PK\x03\x04" + bytes(100), "it is no run"),
        (b"BWRUN9\n" + bytes(100), "one side is of another version"),
        (RICH[:-1], "it ends too early"),
        (RICH[:40], "it ends too early"),
        (RICH + RICH, "not the run that its address names"),
        (RICH + b"x", "it is no run"),
        (MAGIC + (1 << 40).to_bytes(8, "big"), "its head is too large"),
        (MAGIC + (8).to_bytes(8, "big") + b"[" * 8, "its head cannot be read"),
        (MAGIC + (100_000).to_bytes(8, "big") + b"[" * 100_000, "its head cannot be read"),
        (with_head(b"no zlib"), "cannot be read"),
        (with_head(zlib.compress(b"{}")[:-2]), "is cut off"),
        (with_head(zlib.compress(b"{}")), "cannot be read"),
        (with_head(zlib.compress(b"[" * 1_000_000)), "cannot be read"),
        (lambda: with_head(zlib.compress(bytes(65 << 20))), "is larger than 64 MiB"),
        (with_head(b"", encoding="pickle"), "unknown encoding 'pickle'"),
        (with_head(transfer.pack_document(rich_run())), "its arrays are not those of its measurements"),
        (one_array(1 << 27, zlib.compress(bytes(1 << 20))), "more than"),
        (lambda: one_array(1 << 20, zlib.compress(bytes(1 << 27))), "samples have"),
        (one_array(3, zlib.compress(bytes(8))), "samples have"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_body_that_is_no_run_is_refused_and_leaves_nothing(
    ask: Ask, url: str, body: bytes | Callable[[], bytes], said: str
) -> None:
    status, answer = put(ask, body if isinstance(body, bytes) else body())
    assert status == 400, answer
    assert said in answer["what"]
    assert store_behind(url).digests() == {}


def test_a_changed_sample_is_refused(ask: Ask, url: str) -> None:
    changed = bytearray(RICH)
    changed[-3] ^= 1
    status, said = put(ask, bytes(changed))
    assert (status, "have changed" in said["what"]) == (400, True)
    assert store_behind(url).digests() == {}


def test_a_body_that_is_not_what_its_digest_says_is_refused(ask: Ask, url: str) -> None:
    for digest in (digest_of(b"other"), "", "sha-256=:x:"):
        status, said = put(ask, RICH, Content_Digest=digest)
        assert (status, "Content-Digest" in said["what"]) == (400, True)
    assert store_behind(url).digests() == {}


def test_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(
    ask: Ask, served: ServedStores, url: str
) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as client:
        lines = [
            f"PUT {checked_url(url).path}{API}/run?uid=x HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {SECRETS['write']}",
            f"Content-Length: {MOST_BYTES + 1}",
        ]
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        assert client.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_is_cut_off_leaves_nothing(served: ServedStores, ask: Ask, url: str) -> None:
    assert ask("GET", f"{API}/digests")[1] == {}
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as client:
        lines = [
            f"PUT {checked_url(url).path}{API}/run?uid=rich.1 HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {SECRETS['write']}",
            f"Content-Length: {len(RICH)}",
            f"Content-Digest: {digest_of(RICH)}",
        ]
        client.sendall("\r\n".join([*lines, "", ""]).encode() + RICH[:100])
    assert ask("GET", f"{API}/digests") == (200, {})


@pytest.mark.parametrize("uid", ["../x", "..%2f..%2fetc", "a/b", "<script>alert(1)</script>", "'; DROP TABLE runs; --"])
def test_a_name_is_only_ever_a_name(url: str, served: ServedStores, monkeypatch: pytest.MonkeyPatch, uid: str) -> None:
    monkeypatch.setenv("BENCHWRIGHT_TOKEN", SECRETS["admin"])
    before = {path.name for path in Path(served.tokens.path).parent.parent.iterdir()}
    with open_store(url) as store:
        assert store.ingest(run(uid), digest="1")
        assert store.load(uid).id == uid
        assert store.delete(uid)
    assert {path.name for path in Path(served.tokens.path).parent.parent.iterdir()} == before


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"where": 1}',
        b'{"where": {}, "limit": "x"}',
        b'{"where": {}, "limit": 1e400}',
        b'{"where": {}, "else": 1}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"where": {"since": "\\ud800"}}',
        b'{"where": {"since": "\\u0000"}}',
        b'{"where": {"status": "\'; --"}}',
    ],
)
def test_a_question_that_is_none_is_refused_in_words(ask: Ask, body: bytes) -> None:
    status, said = ask("POST", f"{API}/find", body)
    assert status in (400, 422)
    assert said["what"]


@pytest.mark.parametrize("text", ["'; DROP TABLE runs; --", "%", "_", "\\ud800", "\\u0000", "x" * 5000])
@pytest.mark.parametrize("field", ["id", "uid", "name", "machine", "benchmark", "text"])
def test_sql_in_a_filter_is_text(ask: Ask, field: str, text: str) -> None:
    status, found = ask("POST", f"{API}/find", f'{{"where": {{"{field}": "{text}"}}, "limit": -1}}'.encode())
    assert (status, found) == (200, [])


def test_json_that_is_too_large_is_refused(ask: Ask) -> None:
    assert ask("POST", f"{API}/load", b"[" + b'"x",' * 300_000 + b'"x"]')[0] == 413
    assert ask("POST", f"{API}/load", json.dumps(["x"] * 201).encode())[0] == 413


def test_many_samples_arrive_and_come_back(url: str, served: ServedStores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHWRIGHT_TOKEN", served.token)
    before = big_run("big.1", samples=200_000, benchmarks=4)
    with open_store(url) as store:
        store.ingest(before, digest="1")
        assert same(store.load("big.1"), before)
        assert store.check() == []


def test_the_token_is_in_no_log_and_no_message(
    url: str, ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("BENCHWRIGHT_TOKEN", SECRETS["read"])
    with open_store(url) as store, pytest.raises(StoreAway, match="may only read; this needs write") as caught:
        store.ingest(rich_run(), digest="1")
    put(ask, RICH)
    assert "PUT by 'admin': /run uid=rich.1" in caplog.text
    assert not any(secret in caplog.text + str(caught.value) for secret in SECRETS.values())


def test_a_token_comes_from_a_file_that_only_its_owner_reads(
    url: str, served: ServedStores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BENCHWRIGHT_TOKEN", raising=False)
    file = tmp_path / "token"
    monkeypatch.setenv("BENCHWRIGHT_TOKEN_FILE", str(file))
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        open_store(url)
    file.write_text(served.token + "\n")
    file.chmod(0o644)
    with pytest.raises(InvalidInput, match="chmod 600"):
        open_store(url)
    file.chmod(0o600)
    with open_store(url) as store:
        assert store.runs(RunFilter()) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("http://bench.example.org", "http would send the token readable"),
        ("https://me:secret@bench.example.org", "no place in an address"),
        ("https://bench.example.org/?token=secret", "no place in an address"),
        ("https://", "no http or https address"),
        ("https://x:99999", "no http or https address"),
        ("https://a b", "no http or https address"),
    ],
)
def test_an_address_that_would_leak_a_token_is_refused(wrong: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        open_store(wrong)
    assert "secret" not in str(caught.value)


def test_an_idle_connection_that_was_closed_is_opened_again(url: str, served: ServedStores) -> None:
    with HttpStore(checked_url(url), served.token, None) as store:
        store.digests()
        assert store._connection is not None
        store._connection.sock.shutdown(socket.SHUT_RDWR)
        assert store.digests() == {}


def test_a_stranger_and_nobody_are_told_apart(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(StoreAway, match=r"cannot be reached: Connection refused.*benchwright store send"):
        open_store(f"http://127.0.0.1:{port}")


def test_a_run_that_is_too_large_is_not_sent(url: str, served: ServedStores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHWRIGHT_TOKEN", served.token)
    monkeypatch.setattr("benchwright.store.http_store.MOST_BYTES", 1000)
    with open_store(url) as store, pytest.raises(StoreTrouble, match="takes at most") as caught:
        store.ingest(rich_run(), digest="1")
    assert not isinstance(caught.value, StoreAway)


def test_the_description_names_every_route_and_every_type_is_there(ask: Ask) -> None:
    status, said = ask("GET", "/openapi.json", token="")
    assert status == 200
    named = {f"{m.upper()} {path.removeprefix(API)}" for path, ways in said["paths"].items() for m in ways}
    assert {*NAMES, *(f"POST /{name}" for name in FOREIGN_ROUTES.names())} <= named
    references = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(said)))
    assert references <= said["components"]["schemas"].keys()
    assert {"RunRow", "RunFilter", "ServerError", "SummarySeries"} <= references
    find = said["paths"][f"{API}/find"]["post"]
    assert "may read" in find["description"]


@anything
@given(data=st.data())
def test_nothing_that_fits_a_description_breaks_a_route(ask: Ask, data: st.DataObject) -> None:
    """Bodies of every shape that JSON has, and parameters of any text: answered or refused, never a failure of the server."""
    name = data.draw(st.sampled_from(NAMES))
    method, path = name.split()
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    )
    body = data.draw(st.just(b"") | st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode()))
    texts = {key: data.draw(st.text(max_size=8)) for key in ("id", "uid", "name", "replace")}
    query = urlencode({key: text.encode("utf-8", "surrogatepass") for key, text in texts.items()})
    headers = {"Content_Digest": digest_of(body)} if method == "PUT" else {}
    status, said = ask(method, f"{API}{path}?{query}", body if method in ("POST", "PUT") else None, **headers)
    assert status < 500, said


KEYS = [
    "where",
    "limit",
    "newest_first",
    "series",
    "runs",
    "labels",
    "since",
    "status",
    "benchmark",
    "newest",
    "most",
    "offset",
    "commit",
]


def test_a_server_that_is_older_than_the_client_says_so(
    served: ServedStores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes runs and gives them back; what it does not know is refused with its version, never an empty history."""
    later = ("/series", "/summaries", "/logs")
    monkeypatch.setattr("benchwright.server.app.ROUTES", tuple(route for route in ROUTES if route[1] not in later))
    monkeypatch.setenv("BENCHWRIGHT_TOKEN", SECRETS["admin"])
    with open_store(served.serve(tmp_path / "older.db")) as store:
        store.ingest_all([StoreEntry(run=rich_run(), digest="1", logs={"b": ["x"]})])
        assert same(store.load("rich.1"), rich_run())
        uses: list[Callable[[], object]] = [
            lambda: store.summaries(SummaryFilter()),
            lambda: store.series(SummaryFilter()),
            lambda: store.logs("rich.1"),
        ]
        for use in uses:
            with pytest.raises(StoreTrouble, match=f"it is benchwright {__version__} and speaks {API}"):
                use()


def test_what_a_newer_client_adds_to_a_run_does_no_harm(ask: Ask, url: str) -> None:
    entry = packed_entry(StoreEntry(run=rich_run(), digest="1"))
    head = json.dumps(json.loads(entry[1]) | {"colour": "red", "logs": {}}).encode()
    body = b"".join([entry[0][:7], len(head).to_bytes(8, "big"), head, *entry[2:]])
    assert put(ask, body) == (200, 1)
    assert same(store_behind(url).load("rich.1"), rich_run())
    status, said = put(ask, body.replace(b"BWRUN1", b"BWRUN2", 1))
    assert (status, "one side is of another version" in said["what"]) == (400, True)


@pytest.mark.parametrize("path", ["/series", "/summaries"])
@pytest.mark.parametrize("text", ["'; DROP TABLE runs; --", "%", "[", "\\ud800", "\\u0000"])
def test_sql_in_a_filter_of_summaries_is_text(ask: Ask, path: str, text: str) -> None:
    for field in ("benchmark", "metric", "commit"):
        assert ask("POST", API + path, f'{{"where": {{"{field}": "{text}"}}}}'.encode()) == (200, [])
    assert ask("POST", API + path, f'{{"where": {{"series": ["{text}"]}}}}'.encode()) == (200, [])
    assert ask("POST", API + path, b'{"where": {}, "colour": 1}')[0] == 400

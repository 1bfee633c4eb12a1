"""What every route that takes another tool's results must do, with whatever is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_package import variants

from benchwright.core.aggregates import aggregate
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.server.route import FOREIGN_ROUTES, ForeignRoute
from benchwright.store.base import RunFilter, StoreEntry
from benchwright.store.sql_store import SqlStore, open_store

anything = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
MESSAGE = {
    "int": {"time": 1_700_000_000, "num_runs": 2, "p50": 1.5},
    "normal": {
        "net_name": "net",
        "identifier": "id",
        "type": "NET",
        "metric": "latency",
        "unit": "ms",
        "message_id": "m1",
    },
    "normvector": {"values": [1.25, 1.75]},
}
GOOD = {
    "fai-pep": json.dumps(
        {"access_token": "t", "logs": json.dumps([{"category": "c", "message": json.dumps(MESSAGE)}])}
    ),
    "timings": "t\nsort 0.25\n",
}


@pytest.fixture(params=variants(FOREIGN_ROUTES))
def name(request: pytest.FixtureRequest, plugins: None) -> str:
    found: str = request.param
    return found


@pytest.fixture
def route(name: str) -> ForeignRoute:
    return FOREIGN_ROUTES.load(name)()


def nothing(uid: str) -> Run | None:
    return None


def take(route: ForeignRoute, store: SqlStore, body: bytes) -> object:
    def stored(uid: str) -> Run | None:
        return None if store.digest_of(uid) is None else store.load(uid)

    post = route.read(body)
    store.ingest_all([StoreEntry(run=each.run, digest=each.digest) for each in route.runs(post, stored)])
    return route.answer(post)


def test_what_is_sent_becomes_a_run_and_twice_is_once(route: ForeignRoute, name: str, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db"), aggregate=aggregate) as store:
        first = take(route, store, GOOD[name].encode())
        (row,) = store.runs(RunFilter())
        digest = store.digest_of(row.uid)
        assert take(route, store, GOOD[name].encode()) == first
        assert [each.uid for each in store.runs(RunFilter())] == [row.uid]
        assert store.digest_of(row.uid) == digest
        assert json.dumps(first)
        assert store.check() == []


def test_its_address_is_its_own(route: ForeignRoute) -> None:
    assert route.path.startswith("/")
    assert not route.path.startswith(("/api", "/runs", "/history", "/changes", "/machines"))


def answer_to(body: bytes, route: ForeignRoute) -> str:
    """ "read", or the words in which it is refused; anything else that is raised fails the test."""
    try:
        route.runs(route.read(body), nothing)
    except InvalidInput as refusal:
        return str(refusal)
    return "read"


@anything
@given(body=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused_in_words(route: ForeignRoute, body: bytes) -> None:
    assert answer_to(body, route)


@anything
@given(data=st.data())
def test_a_message_that_is_damaged_is_read_or_refused_in_words(
    route: ForeignRoute, name: str, data: st.DataObject
) -> None:
    text = GOOD[name]
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = (
        text[:at]
        + data.draw(st.sampled_from(["", '"', "\\", "9e999", "\0", "\ud800", "[", "null", "{}"]))
        + text[at + 1 :]
    )
    assert answer_to(damaged.encode("utf-8", "surrogatepass"), route)

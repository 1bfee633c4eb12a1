"""FAI-PEP's remote reporter against our own server: what its client sends is stored, once."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import builders
import pytest
from builders import launch, measurement
from served_stores import ServedStores, store_behind

from benchwright.artifacts.outbox import Rejected
from benchwright.compat.faipep.remote.deliver import logs_of, post
from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint
from benchwright.compat.faipep.reports import reports_of
from benchwright.server.tokens import Scope
from benchwright.store.base import RunFilter
from benchwright.store.http_store import checked_url


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStores]:
    with ServedStores(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture
def url(stores: ServedStores, tmp_path: Path) -> str:
    return stores.serve(tmp_path / "store.db")


def logs(*values: float, tests: int = 1) -> list[object]:
    """What our own remote reporter sends, which has the form of FAI-PEP's."""
    results = [
        builders.result(
            f"net{n}",
            launch(
                measurement(*(values or (0.00085, 0.00095)), metric="latency", unit="s", source="log"),
                measurement(7.0, metric="accuracy", unit="%", source="log"),
            ),
        )
        for n in range(tests)
    ]
    return [log for report in reports_of(builders.run(*results)).reports for log in logs_of(report, "perf")]


def send(url: str, token: str, sent: list[object]) -> None:
    post(Endpoint(f"{url}/fai-pep", "perf"), AccessToken(token), sent, timeout_s=30)


def test_each_test_becomes_a_run_with_every_digit(stores: ServedStores, url: str) -> None:
    sent = logs(0.00085, 0.0009500000000000001, tests=2)
    assert len(sent) == 4
    send(url, stores.token, sent)
    rows = store_behind(url).runs(RunFilter())
    assert len(rows) == 2
    loaded = store_behind(url).load(rows[0].uid)
    latency = next(m for x in loaded.results[0].launches for m in x.measurements if m.unit == "s")
    assert latency.samples == (0.00085, 0.0009500000000000001)
    assert store_behind(url).check() == []


def test_a_message_counts_once_in_whatever_parts_it_is_sent(stores: ServedStores, url: str) -> None:
    sent = logs()
    send(url, stores.token, sent[:1])
    send(url, stores.token, sent[1:])
    send(url, stores.token, sent)
    send(url, stores.token, [sent[1], sent[0], sent[1]])
    (row,) = store_behind(url).runs(RunFilter())
    found = store_behind(url).load(row.uid)
    assert sorted(len(m.samples) for m in found.results[0].launches[0].measurements) == [1, 2]


def test_messages_without_an_id_count_once_too(stores: ServedStores, url: str) -> None:
    """As FAI-PEP itself sends them."""
    message = {
        "int": {"time": 1700000000, "p50": 12.5, "num_runs": 3},
        "normal": {"net_name": "squeezenet", "identifier": "delay", "type": "NET", "metric": "latency", "unit": "us"}
        | {"platform": "Linux-x", "platform_hash": "host7", "commit": "abc", "framework": "caffe2"},
        "normvector": {"values": [12.5, 13, "12.0"]},
    }
    log = {"category": "perf", "message": json.dumps(message), "line_escape": False}
    send(url, stores.token, [log])
    send(url, stores.token, [log])
    (row,) = store_behind(url).runs(RunFilter())
    found = store_behind(url).load(row.uid)
    assert found.machine.hostname == "host7"
    assert found.results[0].launches[0].measurements[0].samples == (12.5e-6, 13e-6, 12e-6)


@pytest.mark.parametrize("wrong", ["", "bw_x", "reader"])
def test_a_token_that_may_not_write_stores_nothing(stores: ServedStores, url: str, wrong: str) -> None:
    token = stores.tokens.create(f"reader {url}", Scope.READ) if wrong == "reader" else wrong
    with pytest.raises(Rejected):
        send(url, token, logs())
    assert store_behind(url).digests() == {}


def test_one_bad_message_stores_none_of_its_request(stores: ServedStores, url: str) -> None:
    with pytest.raises(Rejected):
        send(url, stores.token, [*logs(), {"category": "perf", "message": "{"}])
    assert store_behind(url).digests() == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"access_token": 1}',
        b'{"access_token": "x", "logs": {}}',
        b"[" * 100000,
        b'{"access_token": "x", "logs": "[{]"}',
        b'{"access_token": "\\ud800", "logs": "[]"}',
    ],
)
def test_what_is_no_report_is_refused_in_words(stores: ServedStores, url: str, body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", stores.port, timeout=60)
    connection.request("POST", f"{checked_url(url).path}/fai-pep", body)
    answer = connection.getresponse()
    assert answer.status in (400, 401), answer.read()
    assert json.loads(answer.read())["what"]
    connection.close()

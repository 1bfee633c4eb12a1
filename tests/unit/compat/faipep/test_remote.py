"""The remote reporter against a real server that misbehaves: nothing is lost, and the token shows nowhere."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import builders
import pytest
import report_server as server_ways
from builders import launch, measurement
from command_line import CommandLine
from report_server import ReportServer, report_server

from benchwright.artifacts.outbox import SendLimits
from benchwright.compat.faipep.remote.deliver import Sent, send_waiting, spool_reports
from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint, endpoint_of, token_of
from benchwright.compat.faipep.remote.spool import Spool
from benchwright.compat.faipep.reporters import FaiPepDelivery
from benchwright.compat.faipep.reports import reports_of
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.runs.delivery import NotReported, deliver

SECRET = "t0p-s3cret-token"
QUICK = SendLimits(attempts=3, pause_s=0.01, timeout_s=1.0, total_s=20.0)


def a_run(*values: float, tests: int = 1) -> Run:
    def one(number: int) -> Any:
        m = measurement(*(values or (0.85, 0.95)), metric="latency", unit="ms", source="log")
        return builders.result(f"net{number}", launch(m))

    return builders.run(*(one(n) for n in range(tests)))


def spooled(base: Path, endpoint: Endpoint, made: Run) -> Spool:
    spool = Spool(base)
    spool_reports(spool, endpoint, made.id, reports_of(made).reports)
    return spool


def send(server: ReportServer, base: Path, made: Run | None = None, limits: SendLimits = QUICK) -> Sent:
    endpoint = Endpoint(server.url, "perf")
    spool = spooled(base, endpoint, made) if made is not None else Spool(base)
    return send_waiting(spool, endpoint, AccessToken(SECRET), limits)


def test_a_request_has_the_seeds_form_and_numbers_stay_numbers(tmp_path: Path) -> None:
    with report_server() as server:
        assert send(server, tmp_path, a_run(0.85, 0.95)) == Sent(messages=1)
    (body,) = server.requests
    assert body["access_token"] == SECRET
    (log,) = json.loads(body["logs"])
    assert (log["category"], log["line_escape"]) == ("perf", False)
    message = json.loads(log["message"])
    assert set(message) == {"int", "normal", "normvector"}
    assert message["normvector"] == {"values": [0.85, 0.95]}
    assert message["int"]["p50"] == pytest.approx(0.9)
    assert message["int"]["mean"] == pytest.approx(0.9)
    assert message["int"]["num_runs"] == 2
    assert message["int"]["time"] == 1_794_736_800
    assert message["normal"]["net_name"] == "net0"
    assert (message["normal"]["type"], message["normal"]["metric"], message["normal"]["unit"]) == (
        "NET",
        "latency",
        "ms",
    )
    assert all(isinstance(value, str) for value in message["normal"].values())
    assert all(isinstance(value, int | float) for value in message["int"].values())
    assert Spool(tmp_path).waiting() == []


@pytest.mark.parametrize("way", ["fail", "cut", "vanish", "hang", "drip"])
def test_passing_trouble_is_tried_again(way: str, tmp_path: Path) -> None:
    with report_server(getattr(server_ways, way)) as server:
        assert send(server, tmp_path, a_run()) == Sent(messages=1)
        assert len(server.requests) == 2
        assert len(server.taken) == 1


@pytest.mark.parametrize(
    ("way", "said", "requests"),
    [
        ("fail", "500", 3),
        ("miscount", "took 0 of 1", 1),
        ("babble", 'no "count"', 1),
        ("refuse", "check the token", 1),
        ("redirect", "307", 1),
        ("cut", "cut", 3),
    ],
)
def test_what_is_not_taken_waits_and_goes_first_the_next_time(
    way: str, said: str, requests: int, tmp_path: Path
) -> None:
    with report_server(*[getattr(server_ways, way)] * 3) as server:
        sent = send(server, tmp_path, a_run(1.0))
        assert (sent.messages, sent.waiting) == (0, 1)
        assert sent.why is not None
        assert said in sent.why
        assert SECRET not in sent.why
        assert len(server.requests) == requests
        server.behaviours.clear()
        assert send(server, tmp_path, a_run(2.0)).messages == 2
        assert [message["normvector"]["values"][0] for message in server.taken] == [1.0, 2.0]
    assert Spool(tmp_path).waiting() == []


def test_a_dead_server_costs_little_however_much_waits(tmp_path: Path) -> None:
    with report_server() as server:
        endpoint = Endpoint(server.url, "perf")
    spool = spooled(tmp_path, endpoint, a_run(tests=30))
    pauses: list[float] = []
    sent = send_waiting(spool, endpoint, AccessToken(SECRET), QUICK, pause=pauses.append)
    assert (sent.messages, sent.waiting) == (0, 30)
    assert len(pauses) == 2  # three attempts for the first, none for the others


def test_one_request_that_is_disliked_does_not_hold_up_the_others(tmp_path: Path) -> None:
    with report_server(server_ways.dislike) as server:
        sent = send(server, tmp_path, a_run(tests=3))
    assert (sent.messages, sent.waiting) == (2, 1)


def test_pauses_grow_and_are_bounded(tmp_path: Path) -> None:
    pauses: list[float] = []
    with report_server(*[server_ways.fail] * 9) as server:
        endpoint = Endpoint(server.url, "perf")
        spool = spooled(tmp_path, endpoint, a_run())
        send_waiting(
            spool, endpoint, AccessToken(None), SendLimits(attempts=6, pause_s=1, total_s=9), pause=pauses.append
        )
    assert 4 <= len(pauses) <= 5
    assert max(pauses) <= 9
    assert all(0.5 * 2**n <= pause <= 2**n for n, pause in enumerate(pauses))


def test_other_reporters_messages_stay_where_they_are(tmp_path: Path) -> None:
    spooled(tmp_path, Endpoint("http://127.0.0.1:1/logs", "perf"), a_run())
    with report_server() as server:
        assert send(server, tmp_path, a_run()) == Sent(messages=1)
    assert [each.content.url for each in Spool(tmp_path).waiting()] == ["http://127.0.0.1:1/logs"]


def _flush(base: str, url: str) -> None:
    send_waiting(Spool(Path(base)), Endpoint(url, "perf"), AccessToken(SECRET), SendLimits(pause_s=0.01))


@pytest.mark.unmeasured
def test_two_processes_that_empty_one_spool_send_everything_once(tmp_path: Path) -> None:
    with report_server(*[server_ways.slow] * 4) as server:
        endpoint = Endpoint(server.url, "perf")
        spooled(tmp_path, endpoint, a_run(tests=10))
        senders = [multiprocessing.Process(target=_flush, args=(str(tmp_path), server.url)) for _ in range(2)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
            assert sender.exitcode == 0
        assert sorted(m["normal"]["net_name"] for m in server.taken) == sorted(f"net{n}" for n in range(10))
    assert Spool(tmp_path).waiting() == []


def test_a_sender_that_is_killed_loses_nothing_and_its_messages_can_be_told_apart(tmp_path: Path) -> None:
    with report_server(server_ways.hang) as server:
        endpoint = Endpoint(server.url, "perf")
        spooled(tmp_path, endpoint, a_run())
        sender = multiprocessing.Process(target=_flush, args=(str(tmp_path), server.url))
        sender.start()
        while not server.requests:
            time.sleep(0.01)
        assert sender.pid is not None
        os.kill(sender.pid, signal.SIGKILL)
        sender.join()
        assert len(Spool(tmp_path).waiting(endpoint)) == 1
        assert send(server, tmp_path) == Sent(messages=1)
        first, second = (json.loads(json.loads(body["logs"])[0]["message"]) for body in server.requests)
        assert first["normal"]["message_id"] == second["normal"]["message_id"]


def test_a_damaged_file_in_the_spool_is_named_and_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with report_server() as server:
        path = spool.add(Endpoint(server.url, "perf"), "r", [])
        path.write_text('{"format": "benchwright-sp')
        delivery = FaiPepDelivery(tmp_path, remote=(Endpoint(server.url, "perf"), AccessToken(None)))
        said = list(delivery.finish(a_run()))
    assert said[-1] == f"{path} cannot be read and was not sent"
    assert path.exists()


def test_a_spool_that_cannot_be_written_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("in the way")
    delivery = FaiPepDelivery(tmp_path, remote=(Endpoint("http://127.0.0.1:1/x", "perf"), AccessToken(None)))
    with pytest.raises(NotReported, match="the run is complete, but could not be sent") as caught:
        list(deliver(a_run(), [delivery]))
    assert caught.value.run.id == "run.1"


def test_the_spool_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = Spool(tmp_path).add(Endpoint("https://x/y", "c"), "r", [])
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("perf.example/logs|cat", "https://perf.example/logs"),
        ("http://perf.example:8080/x | cat ", "http://perf.example:8080/x"),
    ],
)
def test_https_is_assumed_where_there_is_no_scheme(text: str, url: str) -> None:
    assert endpoint_of(text) == Endpoint(url, "cat")


@pytest.mark.parametrize(
    "text",
    [
        "perf.example",
        "|cat",
        "x|",
        "ftp://x/y|cat",
        "http://|cat",
        "https://u:p@x/|c",
        "a b|c",
        "x|a|b",
        "http://x:y/|c",
    ],
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        endpoint_of(text)
    assert caught.value.where == "--remote-reporter"


def test_a_token_comes_from_the_option_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHWRIGHT_REMOTE_TOKEN", "from-env")
    (tmp_path / "token").write_text("from-file\n")
    assert token_of("given").reveal() == "given"
    assert token_of(f"@{tmp_path}/token").reveal() == "from-file"
    assert token_of(None).reveal() == "from-env"
    assert SECRET not in repr(AccessToken(SECRET))
    with pytest.raises(InvalidInput, match="cannot be read"):
        token_of("@/nowhere")


def test_the_token_is_in_no_file_no_message_and_no_programs_environment(bw: CommandLine, tmp_path: Path) -> None:
    code = "import os; print('latency=' + str(len(os.environ.get('BENCHWRIGHT_REMOTE_TOKEN', ''))+1))"
    with report_server(server_ways.refuse) as server:
        done = bw(
            *("run", "--base", str(tmp_path / "base"), "--remote-reporter", f"{server.url}|perf"),
            *("--metric", "latency=kv:latency", "--", sys.executable, "-c", code),
            env={"BENCHWRIGHT_REMOTE_TOKEN": SECRET},
        )
        assert server.requests[0]["access_token"] == SECRET
    assert "check the token" in done.stderr
    assert SECRET not in done.stdout + done.stderr
    files = [path for path in (tmp_path / "base").rglob("*") if path.is_file()]
    assert any(path.parent.name == "spool" for path in files)
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert re.search(r"latency +1\n", done.stdout)


def test_what_waits_is_sent_by_export_and_a_run_can_be_sent_again(bw: CommandLine, tmp_path: Path) -> None:
    base = ("--base", str(tmp_path / "base"))
    with report_server(*[server_ways.refuse] * 2) as server:
        remote = ("--remote-reporter", f"{server.url}|perf", "--remote-access-token", SECRET)
        bw("run", *base, *remote, "--", "true")
        assert "check the token" in bw("export", "--flush", *base, *remote, code=1).stderr
        assert "4 records sent" in bw("export", "--flush", *base, *remote).stderr
        assert "nothing waits" in bw("export", "--flush", *base, *remote).stderr
        bw("export", "last", *base, *remote)
        assert server.taken[:4] == server.taken[4:]
    files = [path for path in (tmp_path / "base").rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []

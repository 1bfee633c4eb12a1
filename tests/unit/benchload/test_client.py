"""The client against a server whose times, tokens and tricks are known."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from certificates import own_certificate
from known_servers import SERVER, SOURCE, client_words, column, events_of, failure, known_server, measured

from benchload import server_state
from benchload.client import fell_behind

SMALL = ("--workload", "random:in=12,out=6", "--requests", "12", "--load", "200")


def test_times_lie_between_those_of_the_server_and_count_from_the_plan(tmp_path: Path) -> None:
    """Whatever the machine's load: the client cannot see a token before it was sent, and nothing begins before its time."""
    log = tmp_path / "log"
    with known_server("--log", str(log)) as url:
        events = measured(url, *SMALL)
    told = {int(line["id"]): line for line in map(json.loads, log.read_text().splitlines())}
    assert column(events, "failure") == [None] * 12
    rows = zip(
        *(column(events, n) for n in ("number", "planned", "begun", "first", "last", "ended", "gaps")), strict=True
    )
    for number, planned, begun, first, last, ended, gaps in rows:
        stamps = told[number]["stamps"]
        assert planned <= begun <= told[number]["received"]
        assert stamps[0] <= first <= last <= ended
        assert stamps[-1] <= last
        assert first + sum(gaps) == last
        assert min(gaps) > 0
    assert column(events, "planned") == sorted(column(events, "planned"))


def test_tokens_are_those_of_usage_and_chunks_are_counted_apart() -> None:
    with known_server() as url:
        events = measured(url, *SMALL, model="known-bundle")
        spoken = measured(url, *SMALL, model="known-role")
    assert column(events, "tokens_out") == [6] * 12
    assert column(events, "chunks") == [2] * 12
    assert set(column(events, "tokens_in")) == {16}, "12 words and 4 of salt"
    assert column(spoken, "chunks") == [6] * 12, "to say who speaks is no token"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("429", "http_429"),
        ("500", "http_500"),
        ("cut", "cut"),
        ("endless", "endless"),
        ("wrong", "not_a_stream"),
        ("error", "stream_error"),
    ],
)
def test_a_server_that_answers_nothing_right_is_said_to_be_so(behaviour: str, reason: str) -> None:
    with known_server("--gap", "0.0001") as url:
        events = measured(url, *SMALL, model=f"known-{behaviour}")
    words = {"http_429": "Rate limit reached", "http_500": "engine died", "stream_error": "engine died"}
    assert words.get(reason, reason.replace("not_a_stream", "no stream").replace("cut", "closed")) in failure(events)
    assert not column(events, "planned")


def test_a_pieces_boundary_may_lie_anywhere() -> None:
    with known_server() as url:
        events = measured(url, *SMALL, "--api", "completions", model="known-split")
    assert column(events, "failure") == [None] * 12
    assert column(events, "chunks") == [6] * 12


def test_failures_are_counted_by_reason_after_the_first_answer() -> None:
    with known_server() as url:
        events = measured(url, *SMALL, model="known-once")
    assert Counter(column(events, "failure")) == {"http_500": 12}
    assert next(e["said"] for e in events if e["event"] == "requests") == {"http_500": "engine died"}


def test_a_request_without_an_end_is_given_up_and_others_go_on() -> None:
    with known_server() as url:
        events = measured(url, *SMALL, "--request-timeout", "0.7", model="known-stall")
    assert "did not answer within 0.7 s" in failure(events)


def test_one_request_of_a_minute_holds_up_nothing_beyond_the_limit() -> None:
    with known_server() as url:
        events = measured(url, *SMALL, "--limit", "6", model="known-minute")
    failures = Counter(column(events, "failure"))
    assert failures == {None: 11, "timeout": 1}
    level = next(e for e in events if e["event"] == "level")
    took_s = [(ended - level["began"]) / 1e9 for ended in column(events, "ended")]
    assert max(took_s) < 30, "and not a minute"
    assert next(e for e in events if e["event"] == "endpoint_end")["finished"] is True


def test_a_client_without_files_or_ports_says_so(tmp_path: Path) -> None:
    many = ("--load", "users:40", "--requests", "60", "--workload", "random:in=8,out=4")
    with known_server() as url:
        few_files = f"ulimit -n 24; exec {shlex.join(client_words(url, *many))}"
        events = events_of(["sh", "-c", few_files])
    failures = Counter(column(events, "failure"))
    assert set(failures) == {None, "files"}
    assert "raise ulimit -n" in next(e["said"]["files"] for e in events if "files" in e.get("said", ""))

    script = f"""ip link set lo up && echo "40000 40003" > /proc/sys/net/ipv4/ip_local_port_range || exit 77
{shlex.join([sys.executable, str(SERVER), "--port", "9000"])} > {tmp_path}/url &
until [ -s {tmp_path}/url ]; do sleep 0.05; done
{shlex.join(client_words("http://127.0.0.1:9000/v1", *many))}"""
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "ip", "link"], capture_output=True).returncode:
        pytest.skip("needs namespaces of the network")
    events = events_of([*unshare, "sh", "-c", script])
    assert {None, "ports"} <= set(column(events, "failure")) <= {None, "ports", "refused"}


def test_an_unknown_model_a_wrong_key_and_a_wrong_name_are_told() -> None:
    with known_server("--key", "sesame") as url:
        assert "key is wrong or missing" in failure(measured(url, *SMALL, OPENAI_API_KEY="wrong"))
        assert column(measured(url, *SMALL, "--key-from", "MY_KEY", MY_KEY="sesame"), "failure") == [None] * 12
    with known_server() as url:
        assert "does not exist" in failure(measured(url, *SMALL, model="other"))
    assert "nothing listens there" in failure(measured(url, *SMALL))
    assert "cannot be resolved" in failure(measured("http://no-such-host.invalid/v1", *SMALL))


def test_a_key_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sesame\n")
    with known_server("--key", "sesame") as url:
        events = measured(url, *SMALL, "--key-from", f"@{tmp_path / 'key'}")
    assert column(events, "failure") == [None] * 12
    assert "sesame" not in json.dumps(events)


def test_a_closed_loop_has_so_many_at_a_time_and_an_offline_one_all_at_once() -> None:
    with known_server() as url:
        closed = measured(url, "--load", "users:3", "--requests", "12", "--workload", "random:in=8,out=4")
        offline = measured(url, "--load", "offline", "--requests", "12", "--workload", "random:in=8,out=4")
    spans = sorted(zip(column(closed, "begun"), column(closed, "ended"), strict=True))
    assert len(spans) == 12
    together = max(sum(begun < at <= ended for begun, ended in spans) for _, at in spans)
    assert together == 3
    assert len(set(column(offline, "planned"))) == 1


def test_several_processes_share_the_requests() -> None:
    with known_server() as url:
        events = measured(url, *SMALL, "--processes", "3")
        users = measured(
            url, "--load", "users:2", "--processes", "3", "--requests", "12", "--workload", "random:in=8,out=4"
        )
    assert column(events, "number") == list(range(12))
    assert sorted(column(users, "number")) == list(range(12)), "also if there are fewer users than processes"


def test_prefixes_are_salted_between_launches() -> None:
    """The server's cache knows prompts by their beginning: of another launch it knows none, of this one those that are shared."""
    words = ("--workload", "random:in=40,out=2,prefix=0.9", "--requests", "6", "--load", "100")
    with known_server() as url:
        first = measured(url, *words)
        again = measured(url, *words)
        unsalted = [measured(url, *words, "--salt", "") for _ in range(2)]
    assert column(first, "cached") == column(again, "cached") == [8] * 6, (
        "shared within a launch, after the first check"
    )
    salts = {e["salt"] for events in (first, again) for e in events if e["event"] == "endpoint"}
    assert len(salts) == 2
    assert column(unsalted[1], "tokens_in") == [40] * 6


def test_a_stopped_client_keeps_what_it_has_and_closes_its_connections() -> None:
    with known_server() as url:
        words = client_words(url, "--load", "50", "--seconds", "600", "--workload", "random:in=8,out=4")
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        environment.pop("BENCHPROBE_CONFIG", None)
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = []
        while not lines or '"requests"' not in lines[-1]:
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=600)
    events = [json.loads(line) for line in (*lines, *rest.splitlines())]
    assert process.returncode == 0
    assert events[-1]["event"] == "endpoint_end"
    assert events[-1]["finished"] is False
    assert set(column(events, "failure")) <= {None, "unfinished"}


def test_a_sweep_never_finds_more_than_the_server_can_do() -> None:
    """One request at a time, 10 ms each. A level too short for a queue to build up would be met at any rate."""
    with known_server("--slots", "1", "--service", "const:0.01", "--first", "0", "--gap", "0") as url:
        words = (
            "--load",
            "40",
            "--slo",
            "ttft=100ms@p90",
            "--sweep",
            "--requests",
            "10",
            "--workload",
            "random:in=4,out=1",
        )
        events = measured(url, *words)
    found = next(e for e in events if e["event"] == "capacity")
    levels = [e for e in events if e["event"] == "level_end"]
    assert (found["rate"] or 0) <= 110
    assert found["above"] == min(e["rate"] for e in levels if not e["meets"])
    assert found["rate"] == max((e["rate"] for e in levels if e["meets"]), default=None)


def test_a_sweep_that_its_limit_cuts_short_has_no_capacity() -> None:
    with known_server("--first", "0") as url:
        words = ("--load", "20", "--slo", "ttft=10s@p90", "--sweep", "--requests", "10", "--limit", "2")
        events = measured(url, *words, "--workload", "random:in=4,out=1")
    assert not [e for e in events if e["event"] == "capacity"]
    assert events[-1]["event"] == "endpoint_end"


def test_a_queue_that_grows_is_seen_although_every_answer_was_in_time() -> None:
    steady = [(n * 10, n * 10 + 50) for n in range(100)]
    growing = [(n * 10, n * 15 + 50) for n in range(100)]
    slow_from_the_start = [(n * 10, n * 10 + 5000) for n in range(100)]
    assert [fell_behind(spans) for spans in (steady, growing, slow_from_the_start)] == [False, True, False]


def test_tls_needs_a_certificate_that_is_known(tmp_path: Path) -> None:
    certificate = own_certificate(tmp_path)
    with known_server("--certificate", str(certificate)) as url:
        refused = failure(measured(url, *SMALL))
        assert "certificate was not accepted" in refused
        assert "self-signed" in refused, "as OpenSSL says it"
        events = measured(url, *SMALL, SSL_CERT_FILE=str(certificate))
    assert column(events, "failure") == [None] * 12


def test_how_long_a_server_on_this_machine_waited_for_a_core_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 ms of a second, of which 10 × 0.05 ms are waking up."""
    looks = iter([(7, 1), (7 + 100_000_000, 11)])
    monkeypatch.setattr(server_state, "run_delay", lambda thread: next(looks))
    monkeypatch.setattr(server_state, "perf_counter_ns", iter([0, 1_000_000_000]).__next__)
    with known_server() as url:
        port = int(url.split(":")[2].removesuffix("/v1"))
        where, waited = server_state.ServerThreads(("127.0.0.1", port), socket.AF_INET).ended()
    assert where == server_state.SHARED
    assert waited == pytest.approx(0.0995)


def test_a_server_that_dies_is_counted_as_failures() -> None:
    with known_server() as url:
        words = client_words(url, "--load", "50", "--requests", "100", "--workload", "random:in=8,out=4")
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        environment.pop("BENCHPROBE_CONFIG", None)
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = []
        while not lines or '"level"' not in lines[-1]:
            lines.append(process.stdout.readline())
    rest, _ = process.communicate(timeout=600)
    events = [json.loads(line) for line in (*lines, *rest.splitlines())]
    reasons = Counter(column(events, "failure"))
    assert sum(reasons.values()) == 100, "every planned request is accounted for"
    assert reasons["refused"] + reasons["reset"] + reasons["cut"] > 0


def test_wrong_settings_end_with_code_2() -> None:
    for words, told in (
        (("--load", "fast"), "not a load"),
        (("--slo", "ttft=5"), ""),
        (("--slo", "speed=5ms"), "not an objective"),
        (("--workload", "random:in=x"), "not a length"),
        (("--sweep",), "needs --slo"),
    ):
        command = [sys.executable, "-m", "benchload", "http://127.0.0.1:9/v1", "--model", "m", *words]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True)
        assert done.returncode == (2 if told else 0), done.stderr
        assert told in done.stderr

"""`run openai:…`, a suite's server with our client, and what reports and comparisons make of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from certificates import own_certificate
from command_line import CommandLine
from known_servers import SERVER, known_server
from processes import wait_for
from replayed_client import path_with_replay

SMALL = ("--model", "known", "--load", "100", "--stop", "30", "--workload", "random:in=12,out=6")
FAST, SLOW = "openai:http://127.0.0.1:200/v1", "openai:http://127.0.0.1:300/v1"  # replayed
REPLAYED = ("--model", "known", "--stop", "4", "--workload", "random:in=8,out=2", "-q")


def target(url: str) -> str:
    return f"openai:{url}"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_run_of_an_endpoint_is_in_every_report_and_can_be_compared(bw: CommandLine) -> None:
    with known_server("--core", str(min(os.sched_getaffinity(0)))) as url:
        body = bw.json("run", target(url), *SMALL, "--slo", "ttft=10s@p90", "--repeat", "2")
        first = bw.last_run()
        bw("run", target(url), *SMALL, "--slo", "ttft=10s@p90", "--repeat", "2")
        second = bw.last_run()
        bw("run", target(url), *SMALL[:3], "50", *SMALL[4:], "--slo", "ttft=10s@p90")
        other = bw.last_run()
    (result,) = body["results"]
    metrics = {m["metric"]: m for m in result["metrics"]}
    assert {"time.first_token", "time.per_token", "time.chunk_gap", "time.request", "goodput"} <= metrics.keys()
    assert metrics["slo.met"]["value"] == 100.0
    told = result["endpoint"]["launches"]
    assert [launch["answered"] for launch in told] == [30, 30]
    assert told[0]["digest"] == told[1]["digest"]
    assert told[0]["salt"] != told[1]["salt"]
    for format, words in (
        ("markdown", "time.first_token"),
        ("csv", "time.per_token"),
        ("html", "from blocks of requests"),
        ("json", '"digest"'),
    ):
        assert words in bw("report", first.name, "--format", format).stdout
    assert "time.first_token" in bw("compare", first.name, second.name).stdout
    refused = bw("compare", first.name, other.name, code=2)
    assert "not comparable" in refused.stderr, "another load is another benchmark"


@pytest.fixture
def replay(bw: CommandLine, tmp_path: Path) -> CommandLine:
    """`python -m benchload` of a run asks nobody; its server takes as many ms to the first token as its port and `more` say."""
    bw.env["PATH"] = path_with_replay(tmp_path)
    return bw


def test_runs_of_a_slower_server_are_compared_and_have_a_history_for_each_load(
    replay: CommandLine, tmp_path: Path
) -> None:
    runs = []
    for more_ms, load in ((0, "users:2"), (100, "users:2"), (0, "20")):
        (tmp_path / "more").write_text(str(more_ms))
        replay("run", FAST, *REPLAYED, "--load", load, "--repeat", "6")
        runs.append(replay.last_run().name)
    control, slower, open_loop = runs
    body = json.loads(replay("compare", control, slower, "--metric", "time.first_token", "--json").stdout)
    (effect,) = body["effects"]
    assert (effect["verdict"], effect["ratio"], effect["doubts"]) == ("regressed", pytest.approx(1.5), [])
    assert effect["labels"] == {"load": "2 users"}
    assert "not comparable" in replay("compare", control, open_loop, code=2).stderr
    anyway = json.loads(replay("compare", control, open_loop, "--anyway", "--json").stdout)
    assert anyway["effects"] == [], "figures of a closed loop are no figures of an open one, whatever the user wants"
    series = json.loads(replay("history", "--metric", "time.first_token", "--json").stdout)
    found = {each["setting"]["load"]: [point["run"] for point in each["points"]] for each in series}
    assert found == {"2 users": [control, slower], "20/s poisson": [open_loop]}


def test_an_ab_of_two_servers_alternates_and_judges_the_servers_alone(replay: CommandLine) -> None:
    judged = (*REPLAYED, "--load", "users:2", "--metric", "time.first_token", "--min-effect", "20%", "--repeat", "6")
    body = replay.json("ab", "--control", FAST, "--treatment", SLOW, *judged, code=None)
    positions = [x["position"] for r in replay.json("show", "last")["results"] for x in r["launches"][:2]]
    (effect,) = body["effects"]
    assert (effect["verdict"], effect["ratio"], effect["doubts"]) == ("regressed", pytest.approx(1.5), [])
    assert (body["control"], body["treatment"]) == (FAST, SLOW)
    assert sorted(positions) == [0, 1, 2, 3], "of each side two of the first four"
    (effect,) = replay.json("ab", FAST, "--control", FAST, *judged)["effects"]
    assert (effect["verdict"], effect["doubts"]) == ("same", [])


def test_the_sides_of_an_ab_of_servers_are_checked_first(bw: CommandLine) -> None:
    old = "openai:http://127.0.0.1:9/v1"
    for words, said in (
        (("--control", old, "--treatment", "main"), "is not a server, but the other side is one"),
        (("suite.yaml", "--control", old), "is not a server, but the other side is one"),
        ((old, "--control", old, "--treatment", old), "two servers need no target"),
        ((old, "--control", "args:", "--treatment", "args:--load fast"), "'fast' is not a load"),
        ((old, "--control", "args:", "--treatment", "args:--load users:2"), "one load are not compared with those of"),
        ((old, "--control", "env:A=1", "--treatment", "env:A=2"), "would be the same on both sides"),
        ((old, "--control", "bin:/bin/sh", "--treatment", "bin:/bin/sh"), "would be the same on both sides"),
        ((old, "--control", "args:", "--treatment", "args:--fast"), "unrecognized arguments: --fast"),
    ):
        assert said in bw("ab", *words, "--model", "m", "--env", "SSL_CERT_FILE=x", code=2).stderr, words


def test_a_server_that_cannot_be_measured_is_a_failed_result_that_says_why(bw: CommandLine) -> None:
    with known_server("--key", "sesame") as url:
        done = bw("run", target(url), *SMALL, code=None, env={"OPENAI_API_KEY": "wrong-but-secret-4711"})
        assert done.returncode == 1
        assert "key is wrong or missing" in done.stdout
        files = [p for p in bw.last_run().rglob("*") if p.is_file()]
        assert not any(b"wrong-but-secret-4711" in p.read_bytes() for p in files)
        assert bw("run", target(url), code=2).stderr.count("--model")


def test_names_certificates_and_models_that_are_wrong_fail_with_the_reason(bw: CommandLine, tmp_path: Path) -> None:
    with known_server() as plain, known_server("--certificate", str(own_certificate(tmp_path))) as tls:
        for url, model, said in (
            ("http://no-such-host.invalid/v1", "known", "no-such-host.invalid cannot be resolved"),
            (tls, "known", "certificate was not accepted"),
            (plain, "other", "The model `other` does not exist"),
        ):
            (result,) = bw.json("run", target(url), *SMALL, "--model", model, code=1)["results"]
            assert (result["status"], result["reason"]) == ("failed", "no_data")
            assert said in result["detail"]


def test_a_server_that_restarts_is_measured_on_and_an_interrupt_keeps_what_there_is(
    bw: CommandLine, tmp_path: Path
) -> None:
    """Requests fail while it is away, and are in no average. After Ctrl-C no connection is left."""
    port, logs = str(free_port()), (tmp_path / "first", tmp_path / "second")

    def has_answered(log: Path) -> bool:
        return log.exists() and log.read_text().count("\n") > 3

    words = ("run", target(f"http://127.0.0.1:{port}/v1"), *SMALL[:4], "--workload", SMALL[-1], "--stop", "600s")
    with known_server("--port", port, "--log", str(logs[0])):
        process = subprocess.Popen(bw.argv(*words), env=bw.env, cwd=bw.cwd, stdout=subprocess.DEVNULL)
        assert wait_for(lambda: has_answered(logs[0]))
    with known_server("--port", port, "--log", str(logs[1])):
        assert wait_for(lambda: has_answered(logs[1]))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        left = [c for c in psutil.net_connections("tcp") if c.status == "ESTABLISHED" and c.laddr.port == int(port)]
    assert left == []
    (result,) = bw.json("report", "last")["results"]
    (told,) = result["endpoint"]["launches"]
    assert set(told["failures"]) <= {"refused", "reset", "cut"}
    assert sum(told["failures"].values()) > 0
    samples = result["endpoint"]["percentiles"]["time.request"]
    assert told["answered"] == told["requests"] - sum(told["failures"].values()) > 3
    assert samples
    text = bw("report", "last").stdout
    assert "does not count" in text
    assert "time.request" in text


def test_a_suites_server_is_measured_by_our_client_on_a_core_of_its_own(bw: CommandLine) -> None:
    port = free_port()
    shutil.copy(SERVER, bw.cwd / "serve.py")
    (bw.cwd / "suite.yaml").write_text(
        f"""served:
  definition: .
  server: {{script: serve.py, argv: [--port, {port}], ready: "tcp:127.0.0.1:{port}"}}
  client:
    script: endpoint
    url: http://127.0.0.1:{port}/v1
    argv: {{--model: known, --load: 100, --requests: 20, --workload: "random:in=8,out=4"}}
"""
    )
    body = bw.json("run", "suite.yaml", "--use-current-env")
    (result,) = body["results"]
    assert "time.first_token" in {m["metric"] for m in result["metrics"]}
    expected = "apart" if len(os.sched_getaffinity(0)) > 1 else "shared"
    assert result["endpoint"]["launches"][0]["cores"] == expected
    (bw.cwd / "suite.yaml").write_text("served: {definition: ., server: {}, client: endpoint, argv: {--model: m}}\n")
    assert "url" in bw("run", "suite.yaml", "--use-current-env", code=2).stderr


def test_a_real_engine_streams_and_reports_its_usage(bw: CommandLine, tmp_path: Path) -> None:
    """llama.cpp, with a model of random weights: tokens come from its usage, and are more than its chunks."""
    pytest.importorskip("xllamacpp", reason="the llama.cpp server of the wheel xllamacpp is not installed")
    pytest.importorskip("gguf", reason="gguf, which writes the model, is not installed")
    program = [sys.executable, str(SERVER.with_name("small_llama.py")), "0", str(tmp_path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            url = next(line.strip() for line in server.stdout if line.startswith("http"))
            words = ("--model", "small", "--api", "completions", "--load", "20", "--stop", "10", "--warmup", "0")
            more = ("--workload", "random:in=16,out=24", "--extra-body", '{"ignore_eos": true}')
            body = bw.json("run", target(f"{url}/v1"), *words, *more)
        finally:
            server.kill()
    (result,) = body["results"]
    metrics = {m["metric"]: m["value"] for m in result["metrics"]}
    told = result["endpoint"]["launches"][0]
    assert (told["answered"], told["usage"], told["failures"]) == (10, "ok", {})
    assert metrics["throughput.output_tokens"] == pytest.approx(24 * metrics["throughput.requests"])
    assert metrics["time.per_token"] < metrics["time.request"] / 24
    assert json.dumps(told["course"]) != "[]", "it tells how many requests run"


def test_transformers_serve_streams_chat_and_completions(bw: CommandLine, tmp_path: Path) -> None:
    for package in ("torch", "transformers", "accelerate", "fastapi", "openai", "uvicorn"):
        pytest.importorskip(package, reason="transformers[serving] is not installed")
    port, model = str(free_port()), str(tmp_path / "model")
    program = [sys.executable, str(SERVER.with_name("small_transformers.py")), port, model]
    offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(program, stderr=subprocess.PIPE, text=True, env={**os.environ, **offline})
    assert server.stderr is not None
    try:
        assert any("Uvicorn running" in line for line in server.stderr), "it ended"
        for api in ("chat", "completions"):
            words = ("--model", model, "--api", api, "--load", "20", "--stop", "5", "--warmup", "0")
            body = bw.json("run", target(f"http://127.0.0.1:{port}/v1"), *words, "--workload", "random:in=16,out=24")
            (result,) = body["results"]
            (told,) = result["endpoint"]["launches"]
            assert (told["answered"], told["usage"], told["failures"]) == (5, "ok", {}), result
            metrics = {m["metric"]: m["value"] for m in result["metrics"]}
            assert metrics["throughput.output_tokens"] == pytest.approx(24 * metrics["throughput.requests"])
            assert metrics["throughput.input_tokens"] == pytest.approx(20 * metrics["throughput.requests"])
    finally:
        server.kill()
        server.wait()
        server.stderr.close()

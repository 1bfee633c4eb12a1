"""`run openai:…`, a suite's server with our client, and what reports and comparisons make of them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from known_servers import SERVER, known_server

SMALL = ("--model", "known", "--load", "100", "--stop", "30", "--workload", "random:in=12,out=6")


def target(url: str) -> str:
    return f"openai:{url}"


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


def test_a_server_that_cannot_be_measured_is_a_failed_result_that_says_why(bw: CommandLine) -> None:
    with known_server("--key", "sesame") as url:
        done = bw("run", target(url), *SMALL, code=None, env={"OPENAI_API_KEY": "wrong-but-secret-4711"})
        assert done.returncode == 1
        assert "key is wrong or missing" in done.stdout
        files = [p for p in bw.last_run().rglob("*") if p.is_file()]
        assert not any(b"wrong-but-secret-4711" in p.read_bytes() for p in files)
        assert bw("run", target(url), code=2).stderr.count("--model")


def test_a_suites_server_is_measured_by_our_client_on_a_core_of_its_own(bw: CommandLine) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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

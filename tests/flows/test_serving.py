"""A suite's client measured against its server."""

from __future__ import annotations

import gzip
import json
import socket

import pytest
from command_line import CommandLine
from processes import carrying, wait_for

SUITE = """\
serve:
  inherits: _defaults
  definition: .
  plan: {method: njobs, n: 1}
  stop: {steps: 30}
  warmup: 5
  max_duration: 600
  server:
    argv: {--port: PORT}
    ready: tcp:127.0.0.1:PORT
    ready_timeout: 200s
  client:
    script: ask.py
    argv: {--port: PORT}
"""
SERVER = """\
import http.server, os, sys
if os.path.exists("broken"):
    sys.exit("no model to serve")
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Page).serve_forever()
"""
CLIENT = """\
import sys, urllib.request
from benchprobe import iterate
for _ in iterate("train", range(1000), batch_size=1):
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/").read()
print("asked")
"""


@pytest.fixture
def serving(bw: CommandLine) -> CommandLine:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (bw.cwd / "suite.yaml").write_text(SUITE.replace("PORT", port))
    (bw.cwd / "server.py").write_text(SERVER)
    (bw.cwd / "ask.py").write_text(CLIENT)
    bw.env["SERVING_FLOW"] = str(bw.cwd)
    return bw


def test_the_client_is_measured_and_the_server_is_gone_afterwards(serving):
    body = serving.json("run", "suite.yaml")
    [result] = body["results"]
    assert result["status"] == "ok", result
    folder = serving.last_run()
    events = [json.loads(line) for line in (folder / "serve.0.data").read_text().splitlines()]
    measured = [e for e in events if e["event"] == "steps" and e["phase"] == "measured"]
    assert sum(len(e["step_ns"]) for e in measured) == 30
    assert gzip.decompress((folder / "serve.0.log.gz").read_bytes()) == b"asked\n"
    assert wait_for(lambda: carrying(f"SERVING_FLOW={serving.cwd}") == [])


def test_a_server_that_does_not_come_up_is_what_failed(serving):
    (serving.cwd / "broken").touch()
    [result] = serving.json("run", "suite.yaml", code=1)["results"]
    assert (result["status"], result["reason"]) == ("failed", "crashed")
    log = gzip.decompress((serving.last_run() / "serve.0.log.gz").read_bytes()).decode()
    assert "no model to serve" in log
    assert "the server ended with code 1 before it was ready" in log

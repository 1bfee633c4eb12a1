"""A suite on a node that shares no file system with this machine.

The node is this machine again, reached by ssh, in a mount namespace where the base folder, the suite, the environment and
benchwright itself are hidden by empty folders. What runs there was sent.
"""

from __future__ import annotations

import getpass
import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from ssh_server import another_home, start_ssh_server

import benchwright

SUITE = """\
both:
  inherits: _defaults
  definition: bench
  num_machines: 2
  plan: {method: njobs, n: 1}
  stop: {steps: 20}
  warmup: 2
"""
MAIN = """\
import json, os, pathlib, sys, time
import beside, greeting
from benchprobe import iterate
data = pathlib.Path(os.environ["MILABENCH_DATA_DIR"])
config = json.loads(os.environ["MILABENCH_CONFIG"])
print(json.dumps({
    "ssh": "SSH_CONNECTION" in os.environ,
    "file": __file__, "prefix": sys.prefix, "greeting": greeting.TEXT, "beside": beside.TEXT,
    "data": (data / "set" / "numbers").read_text(), "same": config["dirs"]["data"] == str(data),
    "sees": bool(os.listdir(%r)),
}), flush=True)
for _ in iterate("train", range(100_000), batch_size=1):
    time.sleep(0.002)
"""

pytestmark = pytest.mark.long


@pytest.fixture
def apart(bw: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line beside a suite for this machine and one that sees none of its files."""
    bench = bw.cwd / "bench"
    bench.mkdir()
    (bw.cwd / "suite.yaml").write_text(SUITE)
    (bench / "main.py").write_text(MAIN % str(bw.cwd))
    (bench / "beside.py").write_text("TEXT = 'from the same folder'\n")
    (bw.base / "data" / "set").mkdir(parents=True)
    (bw.base / "data" / "set" / "numbers").write_text("1 2 3")
    environment = make_environment(bw.cwd / "environment")
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("ssh")
    hidden = [bw.base, bw.cwd, Path(benchwright.__file__).parent]
    server = start_ssh_server(folder, "127.0.0.2", another_home(home, hidden=hidden))
    user = getpass.getuser()
    (bw.cwd / "system.yaml").write_text(f"""\
system:
  arch: cpu
  sshkey: {server.folder}/key
  nodes:
    - {{name: first, ip: localhost, main: true, user: {user}}}
    - {{name: second, ip: 127.0.0.2, port: {server.port}, user: {user}}}
""")
    programs = tmp_path_factory.mktemp("programs")
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {server.folder}/client "$@"\n')
    (programs / "ssh").chmod(0o755)
    hide = ("SSH_CONNECTION", "BENCHWRIGHT_SYSTEM", "MILABENCH_SYSTEM", "VIRTUAL_ENV")
    bw.env = {k: v for k, v in bw.env.items() if k not in hide}
    bw.env |= {"PATH": f"{programs}:{environment}/bin:{bw.env['PATH']}"}
    yield bw
    server.stop()


def make_environment(folder: Path) -> Path:
    """A small virtual environment with a package of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "lib" / version / "site-packages" / "greeting.py").write_text("TEXT = 'hello'\n")
    return folder


def printed(folder: Path) -> dict[str, dict[str, object]]:
    return {p.name: json.loads(gzip.decompress(p.read_bytes())) for p in folder.glob("*.log.gz")}


def test_everything_a_node_lacks_is_sent_and_what_it_measured_comes_back(apart):
    body = apart.json("run", "suite.yaml", "--system", "system.yaml")
    [result] = body["results"]
    assert result["status"] == "ok"
    rates = [m for m in result["metrics"] if m["metric"] == "rate"]
    assert [m["labels"]["node"] for m in rates] == ["first", "second"]
    assert [m["launches"] for m in rates] == [1, 1]
    folder = apart.last_run()
    told = printed(folder)
    here, there = told["both.0.first.log.gz"], told["both.0.second.log.gz"]
    assert (here["ssh"], here["sees"]) == (False, True)
    assert (there["ssh"], there["sees"]) == (True, False)
    for shown in (here, there):
        assert (shown["greeting"], shown["beside"], shown["data"]) == ("hello", "from the same folder", "1 2 3")
        assert shown["same"]
    assert there["file"] != here["file"]
    assert not list(folder.glob("*.log"))
    assert {m["labels"].get("node") for m in result["metrics"] if m["metric"] == "memory.peak_rss"} == {
        "first",
        "second",
    }

"""A suite on two nodes: this machine, and this machine again, reached by ssh."""

from __future__ import annotations

import getpass
import gzip
import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from command_line import CommandLine
from ssh_server import SshServer, start_ssh_server

SUITE = """\
both:
  inherits: _defaults
  definition: .
  num_machines: 2
  plan: {method: njobs, n: 1}
  stop: {steps: 20}
  warmup: 2
one:
  inherits: _defaults
  definition: .
  plan: {method: njobs, n: 1}
  stop: {steps: 20}
  warmup: 2
"""
MAIN = """\
import os, time
from benchprobe import iterate
print("by ssh" if "SSH_CONNECTION" in os.environ else "directly", flush=True)
for _ in iterate("train", range(1000), batch_size=1):
    time.sleep(0.002)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    made = start_ssh_server(tmp_path_factory.mktemp("ssh"), "127.0.0.2")
    yield made
    made.stop()


@pytest.fixture
def nodes(bw: CommandLine, server: SshServer) -> CommandLine:
    """The command line beside a suite and a system file, with an ssh that knows the server."""
    (bw.cwd / "suite.yaml").write_text(SUITE)
    (bw.cwd / "main.py").write_text(MAIN)
    describe(bw, server, key="key")
    programs = bw.cwd / "programs"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {server.folder}/client "$@"\n')
    (programs / "ssh").chmod(0o755)
    hidden = ("SSH_CONNECTION", "BENCHWRIGHT_SYSTEM", "MILABENCH_SYSTEM")
    bw.env = {k: v for k, v in bw.env.items() if k not in hidden} | {"PATH": f"{programs}:{bw.env['PATH']}"}
    return bw


def describe(bw: CommandLine, server: SshServer, key: str) -> None:
    user = getpass.getuser()
    (bw.cwd / "system.yaml").write_text(f"""\
system:
  arch: cpu
  sshkey: {server.folder}/{key}
  nodes:
    - {{name: first, ip: localhost, main: true, user: {user}}}
    - {{name: second, ip: 127.0.0.2, port: {server.port}, user: {user}}}
""")


def printed(folder: Path) -> dict[str, str]:
    return {path.name: gzip.decompress(path.read_bytes()).decode() for path in folder.glob("*.log.gz")}


def test_a_benchmark_of_two_machines_runs_on_both(nodes):
    body = nodes.json("run", "suite.yaml", "--system", "system.yaml")
    assert [result["status"] for result in body["results"]] == ["ok", "ok"]
    assert printed(nodes.last_run()) == {
        "both.0.first.log.gz": "directly\n", "both.0.second.log.gz": "by ssh\n", "one.0.log.gz": "directly\n",
    }  # fmt: skip
    both, one = body["results"]
    rates = [m for m in both["metrics"] if m["metric"] == "rate"]
    assert [(m["labels"]["node"], m["launches"]) for m in rates] == [("first", 1), ("second", 1)]  # one launch, not two
    assert all("node" not in m["labels"] for m in one["metrics"])


def test_a_node_that_refuses_us_fails_what_needs_it_and_nothing_else(nodes, server):
    describe(nodes, server, key="other_key")
    body = nodes.json("run", "suite.yaml", "--system", "system.yaml", code=1)
    both, one = body["results"]
    assert (both["status"], one["status"]) == ("failed", "ok")
    assert "node 'second'" in both["detail"]
    assert "Permission denied" in json.dumps(both)


BENCHFILE = """\
import milabench.commands as cmd
from milabench.pack import Package
class Everywhere(cmd.TorchrunAllGPU):  # one process on each machine, which need no GPU
    def __init__(self, executor, *words, **options):
        super().__init__(executor, *words, **options)
        self.wrapper_argv = ["python", "-m", "torch.distributed.run", *self.wrapper_argv[1:]]
    def _argv(self, **kwargs):
        return [*self.wrapper_argv, "--nproc-per-node=1", "--"]
class Nodes(cmd.TorchrunAllNodes):
    def __init__(self, executor):
        cmd.ForeachNode.__init__(self, self.make_base_executor(Everywhere, executor))
class Bench(Package):
    def build_run_plan(self):
        return Nodes(cmd.PackCommand(self, lazy=True)).use_stdout()
__pack__ = Bench
"""
BENCHMATE = Path(__file__).parents[1] / "compat" / "benchmate_suite" / "benchmate"
# torchrun starts it and tells it its rank: that it uses torch itself does not matter.
APART = """\
import os, time
from benchprobe import iterate
for _ in iterate("train", range(100), batch_size=1) if os.environ["RANK"] == "0" else range(100):
    time.sleep(0.005)
"""
TOGETHER = """\
import os, time, torch, torch.distributed as dist
from benchprobe import iterate
dist.init_process_group("gloo")
first = dist.get_rank() == 0
for _ in iterate("train", range(1_000_000), batch_size=1) if first else range(1_000_000):
    dist.all_reduce(torch.ones(8))
    time.sleep(0.005)
dist.destroy_process_group()
"""


@pytest.fixture
def together(nodes: CommandLine) -> CommandLine:
    """The command line beside a benchmark of two machines under torchrun, of which the second reports nothing."""
    pytest.importorskip("torch")
    shutil.copytree(BENCHMATE, nodes.cwd / "benchmate")  # its benchrun starts torchrun
    folder = nodes.cwd / "benchmarks" / "both"
    folder.mkdir(parents=True)
    (folder / "benchfile.py").write_text(BENCHFILE)
    (folder / "main.py").write_text(APART)
    keys = "plan: {method: njobs, n: 1}, warmup: 2"
    (nodes.cwd / "suite.yaml").write_text(f"both: {{definition: benchmarks/both, num_machines: 2, {keys}}}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = (nodes.cwd / "system.yaml").read_text()
    (nodes.cwd / "system.yaml").write_text(text + f"  options: {{torchrun: {{port: {port}}}}}\n")
    return nodes


@pytest.mark.compat
def test_torchrun_over_two_machines_of_which_the_second_reports_nothing(together):
    """milabench marks the second one's process nolog."""
    body = together.json("run", "suite.yaml", "--system", "system.yaml", "--use-current-env")
    [result] = body["results"]
    assert (result["status"], result["detail"]) == ("ok", None)
    assert [m["labels"]["node"] for m in result["metrics"] if m["metric"] == "rate"] == ["first"]
    assert sorted(path.name for path in together.last_run().glob("*.data")) == [
        "both.first.data",
        "both.second.nolog.data",
    ]
    assert "Failure rate: 0.00% (PASS)" in together("report", "--score", "milabench").stdout


@pytest.mark.long
def test_a_stop_on_the_machine_that_reports_ends_the_other_one_too(together):
    """torchrun alone would wait for its peer, whose script knows nothing of the stop, for minutes."""
    main = together.cwd / "benchmarks" / "both" / "main.py"
    main.write_text(TOGETHER)
    suite = (together.cwd / "suite.yaml").read_text()
    (together.cwd / "suite.yaml").write_text(suite.replace("warmup: 2", "warmup: 2, stop: {steps: 20}"))
    body = together.json("run", "suite.yaml", "--system", "system.yaml", "--use-current-env")
    [result] = body["results"]
    assert (result["status"], result["detail"]) == ("ok", None)
    assert [m["labels"]["node"] for m in result["metrics"] if m["metric"] == "rate"] == ["first"]
    for name in ("both.first", "both.second.nolog"):
        assert '"early_stop":true' in (together.last_run() / f"{name}.data").read_text().splitlines()[-1]
    left = psutil.process_iter(["cmdline"])
    assert not [process for process in left if str(main) in (process.info["cmdline"] or [])]

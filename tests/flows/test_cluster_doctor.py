"""`benchwright doctor --on`, as a user runs it: nodes of a system file that are this machine, and a real Slurm cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from slurm_cluster import start_slurm_cluster, wait_until

from benchwright.doctor import check as doctor

pytestmark = pytest.mark.xdist_group("cluster doctor")
SUITE = """\
loop:
  inherits: _defaults
  definition: .
  plan: {method: njobs, n: 1}
"""
MAIN = """\
from benchprobe import iterate
for _ in iterate("train", range(100), batch_size=1):
    sum(range(10_000))
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast the program is does not matter here."""
    monkeypatch.setattr(doctor, "_PROGRAM", "sum(range(200_000))")


def nodes_file(bw: CommandLine, **via: list[str]) -> str:
    nodes = [{"name": name, "via": words} for name, words in via.items()]
    (bw.cwd / "nodes.yaml").write_text(json.dumps({"system": {"nodes": nodes}}))
    return str(bw.cwd / "nodes.yaml")


def test_all_nodes_are_measured_and_one_that_is_lost_is_out(bw: CommandLine, quick: None) -> None:
    (bw.cwd / "suite.yaml").write_text(SUITE)
    (bw.cwd / "main.py").write_text(MAIN)
    file = nodes_file(bw, a=["env"], b=["env"], gone=["sh", "-c", "echo no route to it >&2; exit 1", "sh"])
    words = ("doctor", "--on", "ssh", "--system", file, "--suite", "suite.yaml")
    bw(*words, "-o", "cluster.json", code=1)
    body = json.loads((bw.cwd / "cluster.json").read_text())
    [gone] = [each for each in body["out"] if each["node"] == "gone"]
    assert "no route to it" in gone["faults"][0]
    found = {node["name"]: node for node in body["checkup"]["nodes"]}
    for name in ("a", "b"):
        assert {"wall time", "CPU time", "loop", "all-reduce"} == set(found[name]["costs"]), body["checkup"]["skipped"]
        assert len(found[name]["costs"]["wall time"]) == 16
        assert found[name]["noise"][0]["metric"] == "process.duration"
        assert found[name]["health"]["memory"]["total_bytes"] > 0
    assert [pair["nodes"] for pair in body["checkup"]["pairs"]] == [["a", "b"]]
    assert not list(bw.base.glob(".doctor-*"))
    page = bw(
        "doctor",
        "--on",
        "ssh:a,b",
        "--system",
        file,
        "--quick",
        "--against",
        "cluster.json",
        "--format",
        "html",
        code=None,
    )
    assert page.stdout.startswith("<!DOCTYPE html>")
    assert "not there any more: gone" in page.stdout


def test_options_that_do_not_fit(bw: CommandLine) -> None:
    assert "--against is for clusters" in bw("doctor", "--against", "x.json", code=2).stderr
    assert "'local' has no nodes to compare" in bw("doctor", "--on", "local", code=2).stderr
    assert "cannot be read" in bw("doctor", "--on", "ssh:x", "--against", "no.json", code=2).stderr
    assert "cannot write .csv" in bw("doctor", "--on", "ssh:x", "-o", "x.csv", code=2).stderr


@pytest.fixture
def group() -> Iterator[str]:
    """The file that takes processes of a control group with a fifth of a core."""
    folder = Path("/sys/fs/cgroup/cpu") / f"benchwright-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "cpu.cfs_period_us").write_text("100000")
        (folder / "cpu.cfs_quota_us").write_text("20000")
    except OSError:
        pytest.skip("no control group can be made here")
    yield str(folder / "cgroup.procs")
    wait_until(lambda: not (folder / "cgroup.procs").read_text().strip(), "its processes have ended")
    folder.rmdir()


@pytest.mark.long
def test_a_node_under_a_quota_is_named_with_its_reason(bw: CommandLine, group: str) -> None:
    limited = ["sh", "-c", f'echo $$ >{group} && exec "$@"', "sh"]
    file = nodes_file(bw, a=["env"], b=limited, c=["env"])
    body = json.loads(bw("doctor", "--on", "ssh", "--system", file, "--quick", "--json", code=1).stdout)
    [out] = body["out"]
    assert out["node"] == "b"
    assert "cpu.quota" in [reason["kind"] for reason in out["reasons"]]


@pytest.mark.long
def test_all_nodes_of_a_slurm_partition(bw: CommandLine, quick: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    cluster = start_slurm_cluster(tmp_path_factory.mktemp("slurm"))
    try:
        bw.env |= cluster.environment
        done = bw("doctor", "--on", "slurm:main", "--slurm", "--time=10", "--quick", "--json", code=None)
        body = json.loads(done.stdout)
        assert [node["name"] for node in body["checkup"]["nodes"]] == ["n1", "n2"]
        assert all(len(node["costs"]["CPU time"]) == 16 for node in body["checkup"]["nodes"])
        wait_until(lambda: cluster.jobs() == [], "the queue is empty")
    finally:
        cluster.stop()

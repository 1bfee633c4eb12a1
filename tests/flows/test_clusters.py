"""Runs on a real Slurm cluster, as a user makes them: two nodes, a killed driver, files that are sent."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from builders import job as job_in
from command_line import CommandLine, metric
from slurm_cluster import SlurmCluster, start_slurm_cluster, wait_until

from benchwright.executors.base import Listener, Site
from benchwright.executors.slurm import SlurmExecutor

pytestmark = pytest.mark.xdist_group("slurm flows")
SUITE = """\
both:
  inherits: _defaults
  definition: .
  num_machines: 2
  plan: {method: njobs, n: 1}
  stop: {steps: 20}
  warmup: 2
"""
MAIN = """\
import os, time
from benchprobe import iterate
print("SLURM" if any(n.startswith("SLURM_JOB") for n in os.environ) else "clean", flush=True)
for _ in iterate("train", range(1000), batch_size=1):
    time.sleep(0.002)
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    made = start_slurm_cluster(tmp_path_factory.mktemp("slurm"))
    yield made
    made.stop()


@pytest.fixture
def slurm(bw: CommandLine, running: SlurmCluster) -> Iterator[CommandLine]:
    bw.env |= running.environment
    yield bw
    wait_until(lambda: running.jobs() == [], "the queue is empty")
    running.wait_until_idle()


def test_a_suite_of_two_machines_in_one_allocation(slurm):
    (slurm.cwd / "suite.yaml").write_text(SUITE)
    (slurm.cwd / "main.py").write_text(MAIN)
    slurm("run", "suite.yaml", "--on", "slurm:main", "--nodes", "2", "--slurm", "--time=10", "--use-current-env")
    run = slurm.last_run()
    [launches] = [result["launches"] for result in json.loads((run / "run.json").read_text())["results"]]
    assert [launch["status"] for launch in launches] == ["ok"] * 2
    logs = sorted(run.glob("both*.log.gz"))
    assert [gzip.decompress(log.read_bytes()) for log in logs] == [b"clean\n"] * 2
    assert [log.name.split(".")[-3] for log in logs] == ["node1", "node2"]
    [held] = json.loads((run / "allocations.json").read_text())
    assert (held["nodes"], held["released"]) == (["n1", "n2"], True)


def test_a_killed_driver_is_resumed_on_the_same_node(slurm, running):
    words = ("run", "--on", "slurm", "--slurm", "--time=10 -w n2", "--repeat", "6", "--", "sleep", "1")
    with subprocess.Popen(slurm.argv(*words), env=slurm.env, cwd=slurm.cwd, stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: list(slurm.base.glob("runs/*/*R1*.data")), "the second launch has begun")
        driver.kill()
    [run] = slurm.base.glob("runs/*")
    assert json.loads((run / "allocations.json").read_text())[0]["released"] is False
    done = {log.name: log.stat().st_mtime_ns for log in run.glob("*.R0.*.data")}
    slurm("run", f"--resume={run.name}")
    result = json.loads((run / "run.json").read_text())
    [launches] = [result["launches"] for result in result["results"]]
    assert [launch["status"] for launch in launches] == ["ok"] * 6
    assert {log.name: log.stat().st_mtime_ns for log in run.glob("*.R0.*.data")} == done  # not repeated
    [held] = json.loads((run / "allocations.json").read_text())
    assert (held["nodes"], held["released"]) == (["n2"], True)


def test_what_a_job_uses_is_sent_to_a_node_that_does_not_see_it(slurm, running, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", running.environment["SLURM_CONF"])
    (tmp_path / "data").write_bytes(os.urandom(3_000_000))
    script = 'test "$(wc -c <"$0")" = 3000000 && case $0 in */there/*) echo sent;; esac'
    job = job_in("sh", "-c", script, str(tmp_path / "data"), folder=tmp_path / "run", id="job", cwd=str(tmp_path))
    site = Site(folder=str(tmp_path / "base"), folder_there=str(tmp_path / "there"), slurm=("--time=10",), wait_s=60.0)
    executor = SlurmExecutor(site)
    executor._python = "/no/such/python"
    with executor:
        [outcome] = executor.run([job], Listener())
    assert (outcome.exit_code, outcome.detail) == (0, None)
    assert gzip.decompress((tmp_path / "run" / "job.log.gz").read_bytes()) == b"sent\n"


def test_devices_releases_what_a_killed_run_holds(slurm, running):
    words = ("run", "--on", "slurm", "--slurm", "--time=10", "--", "sleep", "60")
    with subprocess.Popen(slurm.argv(*words), env=slurm.env, cwd=slurm.cwd, stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: list(slurm.base.glob("runs/*/*.data")), "the launch has begun")
        time.sleep(1)
        driver.kill()
    assert "released nodes that killed runs still held" in slurm("devices", code=None).stderr


def test_a_clock_that_is_an_hour_off_there_changes_no_number(slurm, running):
    """Every Python that srun starts sees it, and this machine does not."""
    shift = "import time\nnow = time.time\ntime.time = lambda: now() + 3600\nopen(__file__ + '.seen', 'w').close()\n"
    (slurm.cwd / "there").mkdir()
    (slurm.cwd / "there" / "sitecustomize.py").write_text(shift)
    real = running.call("sh", "-c", "command -v srun").strip()
    (slurm.cwd / "srun").write_text(f'#!/bin/sh\nPYTHONPATH={slurm.cwd}/there exec {real} "$@"\n')
    (slurm.cwd / "srun").chmod(0o755)
    path = {"PATH": f"{slurm.cwd}:{os.environ['PATH']}"}
    body = slurm.json("run", "--on", "slurm", "--slurm", "--time=10", "--", "sleep", "0.2", env=path)
    assert (slurm.cwd / "there" / "sitecustomize.py.seen").exists()
    assert body["status"] == "ok"
    assert 0.2 <= metric(body, "process.duration")["value"] < 60
    assert body["started"] <= body["ended"]


def test_a_run_beside_jobs_of_others_is_marked_to_the_end(slurm, running):
    small = ("sbatch", "--parsable", "--nodelist=n1", "--ntasks=1", "--mem=100", "--time=5", "--output=/dev/null")
    ours, other = (running.call(*small, "--wrap=sleep 300").strip() for _ in range(2))
    wait_until(lambda: running.call("squeue", "--noheader", "--format=%T").split() == ["RUNNING"] * 2, "both run")
    shown = slurm("run", "--on", f"slurm:job={ours}", "--repeat", "2", "--", "true").stdout
    assert "shared its node with jobs of others" in " ".join(shown.split())
    [result] = json.loads((slurm.last_run() / "run.json").read_text())["results"]
    for launch in result["launches"]:
        [mark] = [note for note in launch["notes"] if note["kind"] == "shared_node"]
        assert mark["figure"] == f"job {other}"
    assert "shared its node" in slurm("report").stdout  # from the streams
    running.call("scancel", ours, other)


def test_a_launch_that_may_use_only_some_of_a_nodes_cores_is_marked_to_the_end(slurm, running):
    """As where a scheduler gives a part of a node; here srun starts everything on one core."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("there is only one core")
    real = running.call("sh", "-c", "command -v srun").strip()
    code = f"import os, sys\nwords = sys.argv[1:]\nat = next(n for n, w in enumerate(words) if not w.startswith('-'))\nos.execv({real!r}, [{real!r}, *words[:at], 'taskset', '-c', '0', *words[at:]])\n"
    (slurm.cwd / "srun").write_text(f"#!{sys.executable}\n{code}")
    (slurm.cwd / "srun").chmod(0o755)
    narrow = {"PATH": f"{slurm.cwd}:{os.environ['PATH']}"}
    words = ("run", "--on", "slurm", "--slurm", "--time=10 -w n1", "--repeat", "6", "--", "sleep", "0.05")
    shown = slurm(*words, env=narrow).stdout
    cores = f"1 of {os.cpu_count()}"
    assert re.search(rf"could use only some of the machine's cores \([^)]*{cores}", " ".join(shown.split()))
    first = slurm.last_run()
    [result] = json.loads((first / "run.json").read_text())["results"]
    for launch in result["launches"]:
        assert [note["figure"] for note in launch["notes"] if note["kind"] == "affinity"] == [cores]
    slurm(*words)
    second = slurm.last_run()
    compared = slurm("compare", first.name, second.name, "--anyway", code=None).stdout
    assert f"could use different numbers of cores: {cores} and all" in " ".join(compared.split())

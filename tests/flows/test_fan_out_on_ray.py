"""Independent benchmarks on two nodes of a real Ray cluster."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter

import pytest
from ray_cluster import start_ray_cluster
from slurm_cluster import wait_until

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.long]


def test_two_nodes_share_a_queue(bw, ray_cluster):
    bw.env |= {name: os.environ[name] for name in ray_cluster.environment}
    for name in "abcd":
        (bw.cwd / f"{name}.py").write_text(f"import time\nopen('ran', 'a').write('{name}')\ntime.sleep(1)\n")
    done = bw("run", "a.py", "b.py", "c.py", "d.py", "--on", f"ray:{ray_cluster.address}", "--nodes", "2")
    assert sorted((bw.cwd / "ran").read_text()) == ["a", "b", "c", "d"]
    runs = [json.loads(path.read_text()) for path in bw.base.glob("runs/*/run.json")]
    nodes = {result["benchmark"]: run["labels"]["node"] for run in runs for result in run["results"]}
    assert sorted(nodes) == ["a.py", "b.py", "c.py", "d.py"]
    assert len(set(nodes.values())) == 2
    assert all(f" {name} on {node} " in done.stdout for name, node in nodes.items())
    again = bw("run", "a.py", "b.py", "--on", f"ray:{ray_cluster.address}", "--nodes", "2")  # all were given back
    assert " b.py on " in again.stdout


def test_the_work_of_a_node_whose_raylet_is_killed_goes_elsewhere(bw, tmp_path):
    """What it had ended is not repeated."""
    cluster = start_ray_cluster(tmp_path, ("127.0.0.6", "127.0.0.7"))
    try:
        bw.env |= cluster.environment
        for name in "abcdef":
            body = f"open('ran', 'a').write('{name}')\nwhile os.path.exists('wait-{name}'): time.sleep(0.05)\n"
            (bw.cwd / f"{name}.py").write_text(f"import os, time\n{body}")
        (bw.cwd / "wait-c").touch()
        (bw.cwd / "wait-d").touch()
        words = [f"{name}.py" for name in "abcdef"]
        with subprocess.Popen(
            bw.argv("run", *words, "--on", f"ray:{cluster.address}", "--nodes", "2"), env=bw.env, cwd=bw.cwd
        ) as driver:
            ran = bw.cwd / "ran"
            wait_until(lambda: ran.exists() and sorted(ran.read_text()) == list("abcd"), "both nodes wait")
            cluster.kill_other()
            parts = next((bw.base / "runs" / ".fan-outs").glob("*/measured.jsonl"))
            wait_until(lambda: '"lost":true' in parts.read_text(), "what it had is lost")
            (bw.cwd / "wait-c").unlink()
            (bw.cwd / "wait-d").unlink()
            assert driver.wait(600) == 0
    finally:
        cluster.stop()
    runs = [json.loads(path.read_text()) for path in bw.base.glob("runs/*/run.json")]
    results = [(result["benchmark"], result["status"]) for run in runs for result in run["results"]]
    assert Counter(name for name, status in results if status == "ok") == dict.fromkeys(words, 1)
    again = Counter(ran.read_text())
    assert sorted(again.values()) == [1, 1, 1, 1, 1, 2]
    assert again["c"] + again["d"] == 3

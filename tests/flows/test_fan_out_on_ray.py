"""Independent benchmarks on two nodes of a real Ray cluster."""

from __future__ import annotations

import json
import os

import pytest

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

"""Memory of processes that share it, compared with what the program itself reads in /proc/<pid>/smaps_rollup."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, metric

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the kernel does not tell PSS")
MIB = 2**20
# Fills 120 MiB, forks four children that share it, waits until both figures were sampled, and prints the truth.
SHARING = """
import json, os, re, sys, time
def told(pid, name):
    text = open(f"/proc/{pid}/smaps_rollup").read()
    return int(re.search(name + r":\\s+(\\d+)", text)[1]) * 1024
stream = json.loads(os.environ["BENCHPROBE_CONFIG"])["stream"]
data = b"x" * (120 << 20)
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    children.append(pid)
limit = time.monotonic() + 400
while time.monotonic() < limit:
    samples = [e["values"] for e in map(json.loads, filter(None, open(stream).read().split("\\n")[:-1])) if e["event"] == "sample"]
    wanted = "pss_bytes" if sys.argv[1:] == ["pss"] else "rss_bytes"
    if any(wanted in s and s["rss_bytes"] > 550 << 20 for s in samples):
        break
    time.sleep(0.05)
everybody = [os.getpid(), *children]
print("pss", sum(told(pid, "Pss") for pid in everybody))
print("rss", sum(told(pid, "Rss") for pid in everybody))
for pid in children:
    os.kill(pid, 9)
    os.wait()
"""


def test_shared_pages_count_once_in_the_headline_and_once_for_each_process_in_rss(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    script("sharing.py", SHARING)
    patterns = ("--metric", r"told_pss[unit=B]=pss (\d+)", "--metric", r"told_rss[unit=B]=rss (\d+)")
    body = bw.json("run", "--sample-interval", "0.2s", *patterns, "--", sys.executable, "sharing.py", "pss")
    pss, rss, told_pss, told_rss = (
        metric(body, name)["value"] for name in ("memory.peak_pss", "memory.peak_rss", "told_pss", "told_rss")
    )
    assert told_rss > 600 * MIB  # five times 120 MiB
    assert pss == pytest.approx(told_pss, rel=0.1)
    assert rss == pytest.approx(told_rss, rel=0.1)
    assert metric(body, "memory.peak_pss")["unit"] == "B"
    screen = " ".join(bw("report", "last").stdout.split())
    assert "MiB PSS, " in screen
    assert "MiB RSS" in screen
    page = bw("report", "last", "--format", "html").stdout
    assert "MiB PSS</td>" in page
    for how, pss_name, rss_name in (
        ("markdown", "peak memory (PSS)", "peak memory (RSS)"),
        ("csv", "memory.peak_pss", "memory.peak_rss"),
        ("json", "memory.peak_pss", "memory.peak_rss"),
    ):
        text = bw("report", "last", "--format", how).stdout
        assert pss_name in text
        assert rss_name in text


@pytest.mark.compat
def test_the_drivers_figure_stays_the_resident_memory_of_the_tree(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    script("sharing.py", SHARING)
    (bw.cwd / "tasks.cfg").write_text(
        f"[sharing]\npatterns = ['rss (\\d+)']\nmetrics = ['told_rss']\ncompute_method = ['last']\n"
        f"command_to_execute = {sys.executable} sharing.py\n"
    )
    bw("run", "tasks.cfg", "--sample-interval", "0.2s")
    written = json.loads((bw.cwd / "dlbenchmark_result.json").read_text())
    in_kb = next(value for key, value in written.items() if key.endswith("cpu_memory_usage"))
    told = next(value for key, value in written.items() if key.endswith("told_rss"))
    assert in_kb * 1024 == pytest.approx(told, rel=0.1)

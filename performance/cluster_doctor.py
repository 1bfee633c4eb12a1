"""Does `bw doctor --on` name the slow node, and nobody else?

    python performance/cluster_doctor.py [--trials 200] [--quotas 10] [--quick]
    python performance/cluster_doctor.py --record FILE [--launches 1200]    # noise of this machine now, then simulated with it

First simulated: 64 nodes, each with 16 launches of the noise program in a row as they were recorded on one machine
(`recorded_noise.json`, wall and CPU time). Bars: one node 5 % slow is named in at least 95 % of trials; without one, nobody is in
at least 95 %. Then really: three nodes on this host, one of them in a control group that may use a fifth of a core. Bar: named
in all checkups, with the quota as a reason; where control groups cannot be made, that is said. In how many it was also slower is
printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchwright.analysis.statistics.node_spread import judged_nodes, node_tests
from benchwright.doctor.check import same_twice
from benchwright.doctor.cluster import NOISE_PAIRS

RECORDED = Path(__file__).with_name("recorded_noise.json")
NODES, LAUNCHES = 64, 2 * NOISE_PAIRS
Metrics = Mapping[str, Sequence[float]]  # wall and CPU time of launches, in the order they ran


def simulated(chance: random.Random, noise: Metrics, slow: float = 1.0, nodes: int = NODES) -> list[str]:
    """The nodes that are named; the first is `slow` times as slow as the others."""
    starts = [chance.randrange(len(noise["wall time"]) - LAUNCHES) for _ in range(nodes)]
    families = []
    for metric, values in noise.items():
        costs = {
            f"n{node}": [value * (slow if node == 0 else 1.0) for value in values[start : start + LAUNCHES]]
            for node, start in enumerate(starts)
        }
        families.append(node_tests(metric, costs))
    return sorted({test.node for test in judged_nodes(families) if test.is_slow})


def record(path: str, launches: int) -> None:
    import shlex

    words = shlex.split(same_twice(".").commands[0])
    rows = []
    for _ in range(launches):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(words, check=True)
        wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rows.append((round(wall_s, 5), round(cpu_s, 5)))
    Path(path).write_text(json.dumps({"wall time": [r[0] for r in rows], "CPU time": [r[1] for r in rows]}) + "\n")


@contextmanager
def limited_group() -> Iterator[str | None]:
    """The file that takes processes of a control group with a fifth of a core; None where none can be made."""
    for top, limits in (
        ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}),
        ("/sys/fs/cgroup", {"cpu.max": "20000 100000"}),
    ):
        folder = Path(top) / f"benchwright-quota-{os.getpid()}"
        try:
            folder.mkdir()
            for name, text in limits.items():
                (folder / name).write_text(text)
        except OSError:
            if folder.is_dir():
                folder.rmdir()
            continue
        try:
            yield str(folder / "cgroup.procs")
        finally:
            folder.rmdir()
        return
    yield None


def checkup(folder: Path, procs: str) -> tuple[list[str], list[str]]:
    """The nodes that a real checkup names, and what it says of them: slower metrics and kinds of reasons."""
    enter = ["sh", "-c", f'echo $$ >{procs} && exec "$@"', "sh"]
    nodes = [{"name": "a", "via": ["env"]}, {"name": "b", "via": enter}, {"name": "c", "via": ["env"]}]
    (folder / "nodes.yaml").write_text(json.dumps({"system": {"nodes": nodes}}))
    words = [sys.executable, "-m", "benchwright", "doctor", "--on", "ssh", "--system", str(folder / "nodes.yaml")]
    words += ["--quick", "--json", "--base", str(folder / "base")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    out = json.loads(done.stdout)["out"]
    slow = [f"{test['metric']} × {test['ratio']:.2f}" for each in out for test in each["slow"]]
    return [each["node"] for each in out], [*slow, *(reason["kind"] for each in out for reason in each["reasons"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--quotas", type=int, default=10)
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--launches", type=int, default=1200)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    trials, quotas = (20, 1) if options.quick else (options.trials, options.quotas)
    if options.record:
        record(options.record, options.launches)
        quotas = 0
    noise, missed = json.loads(Path(options.record or RECORDED).read_text()), False
    chance = random.Random(31)
    for slow in (1.0, 1.05):
        named = [simulated(chance, noise, slow) for _ in range(trials)]
        good = sum(names == [] if slow == 1.0 else "n0" in names for names in named)
        others = sum(bool(set(names) - {"n0"}) for names in named)
        what = "nobody named" if slow == 1.0 else f"the node {slow - 1:.0%} slow named"
        print(f"{NODES} nodes, {trials} trials: {what} in {good} (bar {0.95 * trials:.0f}); another one in {others}")
        missed |= good < 0.95 * trials
    with limited_group() as procs, tempfile.TemporaryDirectory() as folder:
        if procs is None:
            print("no control group can be made here: nothing was measured under a quota")
        by_speed = 0
        for number in range(quotas if procs else 0):
            names, reasons = checkup(Path(folder), str(procs))
            print(f"quota of a fifth of a core, checkup {number + 1}: {names} ({', '.join(reasons)})", flush=True)
            missed |= names != ["b"] or "cpu.quota" not in reasons
            by_speed += any("×" in each for each in reasons)
        if procs and quotas:
            print(f"it was also slower than chance explains in {by_speed} of {quotas}")
    if missed:
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()

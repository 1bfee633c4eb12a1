"""What a scheduler between benchwright and its jobs costs, on a cluster that you have.

    python performance/cluster_overhead.py --on slurm:job=ID [--rounds 10] [--jobs 200] [--quick]
    python performance/cluster_overhead.py --on slurm --nodes 2 --jobs 2000
    python performance/cluster_overhead.py --on ray:ADDRESS

Prints, interleaved with `--on local`: the CPU time of a loop, which must not depend on who started it (bar: medians within
1 %); the first job beyond `srun true`, if there is an srun (bar: 0.5 s); CPU time of this process for each further job
(bar: 20 ms), and its memory after many jobs of `true`, of which none may be lost or doubled.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchwright.core.job import Job
from benchwright.executors.base import Executor, Listener, Site
from benchwright.executors.registry import open_executor
from benchwright.executors.ssh import ClusterExecutor

LOOP = "import time; s=0\nfor i in range(3_000_000): s += i\nprint(time.process_time())"


def job(folder: Path, name: str, *argv: str, node: str = "localhost") -> Job:
    return Job(
        id=name,
        benchmark=name,
        argv=argv,
        node=node,
        cwd=str(folder),
        stream=str(folder / f"{name}.data"),
        log=str(folder / f"{name}.log"),
    )


def cpu_s(executor: Executor, folder: Path, name: str) -> float:
    ran = job(folder, name, sys.executable, "-c", LOOP)
    [outcome] = executor.run([ran], Listener())
    if outcome.exit_code != 0:
        sys.exit(f"{name}: {outcome.detail}")
    return float(gzip.decompress(Path(ran.log + ".gz").read_bytes()))


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", help="the cluster; without one nothing is measured")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.on is None:
        print("no cluster was named (--on slurm:job=ID or --on ray:ADDRESS)")
        return
    rounds, jobs = (4, 30) if options.quick else (options.rounds, options.jobs)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as made:
        folder = Path(made)
        with (
            open_executor(options.on, Site(folder=made, nodes=options.nodes)) as there,
            open_executor("local", Site()) as here,
        ):
            began = time.monotonic()
            there.machine()
            print(f"until the agent answers: {time.monotonic() - began:.2f} s", end="")
            _, _, number = options.on.partition("job=")
            if number and shutil.which("srun"):
                began = time.monotonic()
                subprocess.run(["srun", f"--jobid={number}", "--overlap", "-n1", "--quiet", "true"], check=True)
                print(f"; srun true: {time.monotonic() - began:.2f} s", end="")
            began = time.monotonic()
            there.run([job(folder, "first", "true")], Listener())
            print(f"; the first job: {time.monotonic() - began:.2f} s")
            far, near = [], []
            for number in range(rounds):
                far.append(cpu_s(there, folder, f"far{number}"))
                near.append(cpu_s(here, folder, f"near{number}"))
            ratio = statistics.median(far) / statistics.median(near)
            print(f"CPU time of a loop there ÷ here: {ratio:.4f} (medians of {rounds}; bar 0.99 to 1.01)")
            before, began, rss = own_cpu_s(), time.monotonic(), []
            done, names = 0, list(there.machines()) if isinstance(there, ClusterExecutor) else ["localhost"]
            for number in range(0, jobs, len(names)):
                together = [job(folder, f"true{number + n}", "true", node=name) for n, name in enumerate(names)]
                done += sum(outcome.exit_code == 0 for outcome in there.run(together, Listener()))
                rss.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            each = (own_cpu_s() - before) / jobs
            print(
                f"{done} of {jobs} jobs of true on {len(names)} nodes; each {each * 1000:.1f} ms of CPU here (bar 20 ms), "
                f"{(time.monotonic() - began) / jobs * 1000:.0f} ms; memory {rss[0] / 1024:.1f} → {rss[-1] / 1024:.1f} MiB"
            )
            if done != jobs or len(list(folder.glob("true*.data"))) != jobs:
                sys.exit("jobs were lost or doubled")


if __name__ == "__main__":
    main()

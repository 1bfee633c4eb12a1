"""What supervising costs while a program runs: CPU of agent and supervisor together, as a share of one core.

    python performance/sampler_cost.py [--seconds 10] [--quick]

The programs sleep, in trees of 1, 20 and 200 processes, so that everything that is used is ours. The bar: under 1 % of a
core at the default interval. Exits with 1 if it is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import psutil

from benchwright.core.job import Job
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

BAR_PERCENT = 1.0
TREE = "import os,sys,time\nfor _ in range(int(sys.argv[1])-1):\n    if os.fork()==0: break\ntime.sleep(float(sys.argv[2]))"


class Watch(Listener):
    """Finds the supervisor when the job starts, and keeps the CPU time that was last seen."""

    def __init__(self) -> None:
        self.processes: list[psutil.Process] = []
        self.first: tuple[float, float] | None = None
        self.last = (0.0, 0.0)

    def on_started(self, job_id: str, pid: int) -> None:
        supervisor = psutil.Process(pid).parent()
        assert supervisor is not None
        self.processes = [supervisor, *supervisor.parents()[:1]]

    def on_progress(self, job_id: str, values: object) -> None:
        elapsed_s = float(values["elapsed_s"])  # type: ignore[index]
        used_s = sum(sum(process.cpu_times()[:2]) for process in self.processes)
        if self.first is None and elapsed_s > 1:  # the start is another bar's matter
            self.first = (elapsed_s, used_s)
        self.last = (elapsed_s, used_s)


def measure(processes: int, seconds: float, folder: Path) -> tuple[float, int]:
    """Percent of a core, and how many samples of the process tree were taken."""
    stem = folder / f"tree{processes}"
    job = Job(
        id=stem.name,
        benchmark=stem.name,
        argv=(sys.executable, "-c", TREE, str(processes), str(seconds + 2)),
        cwd=str(folder),
        stream=f"{stem}.data",
        log=f"{stem}.log",
    )
    watch = Watch()
    with LocalExecutor() as executor:
        executor.run([job], watch)
    assert watch.first is not None
    elapsed_s, used_s = (last - first for last, first in zip(watch.last, watch.first, strict=True))
    events = [json.loads(line) for line in Path(job.stream).read_text().splitlines()]
    samples = sum("rss_bytes" in event.get("values", {}) for event in events if event["event"] == "sample")
    return 100 * used_s / elapsed_s, samples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each tree (default 10)")
    parser.add_argument("--quick", action="store_true", help="4 seconds")
    options = parser.parse_args()
    seconds = 4.0 if options.quick else options.seconds
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 20, 200):
            percent, samples = measure(processes, seconds, Path(folder))
            missed |= percent >= BAR_PERCENT
            print(f"{processes:4d} processes: {percent:5.2f} % of a core (bar {BAR_PERCENT} %), {samples} samples")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

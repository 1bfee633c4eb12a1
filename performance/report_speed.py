"""What it costs to show results: `report` of a run of 1,000 benchmarks.

    python performance/report_speed.py [--benchmarks 1000] [--quick]

Makes a run of that many benchmarks, two launches each, with the fake executor, then reads it back through the command line.
Bar: `report` under 1 s CPU beyond what starting Python and importing takes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.metric import MetricSpec
from benchwright.executors.fake import FakeExecutor
from benchwright.options.table import Options
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder


def make_run(base: Path, count: int) -> None:
    metric = MetricSpec(name="speed", pattern="speed=(.*)")
    benchmarks = [
        Benchmark(name=f"bench-{n}", workload=Command(argv=("true",), cwd="/"), source="made", metrics=(metric,))
        for n in range(count)
    ]
    samples = {b.name: [100.0 + i for i in range(20)] for b in benchmarks}
    with FakeExecutor(samples) as executor:
        measure(benchmarks, Options(repeat=2), base=BaseFolder(base), name="many", executor=executor)


def cpu_s(argv: list[str], env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="100 benchmarks")
    options = parser.parse_args()
    count = 100 if options.quick else options.benchmarks
    with tempfile.TemporaryDirectory() as folder:
        make_run(Path(folder), count)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"BENCHWRIGHT_BASE": folder}
        bw = [sys.executable, "-m", "benchwright"]
        cases = {"--help": [*bw, "--help"]} | {
            f: [*bw, "report", "--format", f] for f in ("screen", "json", "csv", "markdown", "html")
        }
        seen: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(4):
            for name, argv in cases.items():
                used = cpu_s(argv, env)
                if number:
                    seen[name].append(used)
    print(f"CPU seconds, median of 3 interleaved rounds, {count} benchmarks of 2 launches")
    for name, values in seen.items():
        print(f"  {name:<10} {statistics.median(values):6.2f}")


if __name__ == "__main__":
    main()

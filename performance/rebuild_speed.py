"""How fast `store rebuild` reads run folders back into the store, and how much memory it takes.

    python performance/rebuild_speed.py [--quick] [--runs 20000] [--against REVISION]

Small runs: one benchmark, one launch, a few metrics, as `run -- COMMAND` leaves them. The bar is 500 runs a second. With
--against the same folders are rebuilt by an older revision of this repository, in turns with this one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchwright.core.benchmark import Benchmark, Command
from benchwright.executors.fake import FakeExecutor
from benchwright.options.table import Options
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder

HERE = Path(__file__).parents[1]
BAR = 500.0
REBUILD = """
import json, resource, sys, time
from pathlib import Path
from benchwright.results.rebuild import rebuild
from benchwright.results.kept_runs import Results
from benchwright.runs.base_folder import BaseFolder
base = BaseFolder(Path(sys.argv[1]))
began, cpu = time.perf_counter(), time.process_time()
with Results(base, str(base.path / "store.db")) as results:
    outcomes = list(rebuild(results))
assert not any(outcome.problem for outcome in outcomes), outcomes[:3]
took, cpu = time.perf_counter() - began, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"runs": len(outcomes), "seconds": took, "cpu_s": cpu, "peak_mib": peak}))
"""


def make_runs(base: Path, count: int) -> None:
    """One run is made; the others are copies of it with a time and an id of their own."""
    benchmark = Benchmark(name="b", workload=Command(argv=("true",), cwd="/"), source="command line")
    samples = [0.01 + 0.0001 * n for n in range(50)]
    run = measure([benchmark], Options(), base=BaseFolder(base), name="b", executor=FakeExecutor({"b": samples}))
    first = Path(run.folder)
    for number in range(1, count):
        copy = first.with_name(f"b.{number}")
        shutil.copytree(first, copy)
        for name in ("plan.json", "run.json"):
            text = (copy / name).read_text()
            (copy / name).write_text(text.replace(run.uid, f"{number:032x}").replace(run.id, copy.name))


def rebuilt(base: Path, source: Path) -> dict[str, float]:
    for path in base.glob("store.db*"):
        path.unlink()
    env = {**os.environ, "PYTHONPATH": str(source / "src")}
    command = [sys.executable, "-c", REBUILD, str(base)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=base)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def older(revision: str, folder: Path) -> Path:
    folder.mkdir()
    archive = subprocess.run(
        ["git", "-C", str(HERE), "archive", revision, "src"], capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 runs, one round")
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", metavar="REVISION")
    options = parser.parse_args()
    count, rounds = (2000, 1) if options.quick else (options.runs, options.rounds)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name) / "base"
        make_runs(base, count)
        sources = {"this": HERE}
        if options.against:
            sources[options.against] = older(options.against, Path(name) / "older")
        best: dict[str, float] = {}
        for _ in range(rounds):
            for label, source in sources.items():
                found = rebuilt(base, source)
                speed = found["runs"] / found["seconds"]
                best[label] = max(best.get(label, 0.0), speed)
                print(
                    f"  {label:<12} {found['runs']:,.0f} runs in {found['seconds']:.1f} s: {speed:,.0f} runs/s "
                    f"(CPU {found['cpu_s']:.1f} s of this process), peak {found['peak_mib']:.0f} MiB",
                    flush=True,
                )
        ratio = f", {best['this'] / best[options.against]:.1f} times {options.against}" if options.against else ""
        verdict = "ok" if best["this"] >= BAR else "MISSED"
        print(f"{best['this']:,.0f} runs/s at best (bar {BAR:g}){ratio}   {verdict}")
    return 0 if best["this"] >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())

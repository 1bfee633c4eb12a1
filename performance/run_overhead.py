"""What `run` costs beyond the loop it measures, for the benchmark that `new` makes.

    python performance/run_overhead.py [--rounds 9] [--quick]

Wall time of the whole command, from starting it to its exit, less the time from the loop's beginning to its end as the stream has it; with and
without the store, in turn. That includes what the program itself needs outside of its loop: `python main.py --steps 1` is
run beside them. Wall times on a shared machine are noisy; medians and the best are shown. Bar: under 2 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BAR_S = 2.0
SOURCES = Path(__file__).resolve().parents[1] / "src"


def wall_s(argv: list[str], env: dict[str, str], cwd: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{argv} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return wall


def loop_s(run: Path) -> float:
    """From the beginning of the loop to its end, warm-up and all."""
    [stream] = run.glob("*.data")
    times = {e["event"]: e["t"] for e in map(json.loads, stream.open()) if e["event"] in ("loop", "loop_end")}
    return float(times["loop_end"] - times["loop"]) / 1e9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"BENCHWRIGHT_BASE": str(folder / "base")}
        bw = [sys.executable, "-m", "benchwright"]
        wall_s([*bw, "new", "template"], env, folder)
        measured = {"--no-store": ["--no-store"], "with store": []}
        loops: list[float] = []
        beyond: dict[str, list[float]] = {name: [] for name in [*measured, "python main.py --steps 1"]}
        for _ in range(rounds + 1):
            for name, more in measured.items():
                wall = wall_s([*bw, "run", "template/dev.yaml", *more], env, folder)
                newest = max((folder / "base" / "runs").iterdir(), key=lambda run: run.stat().st_mtime_ns)
                loops.append(loop_s(newest))
                beyond[name].append(wall - loops[-1])
            plain = [sys.executable, "main.py", "--steps", "1"]
            beyond["python main.py --steps 1"].append(
                wall_s(plain, env | {"PYTHONPATH": str(SOURCES)}, folder / "template")
            )
    print(f"{rounds} rounds in turn; the loop took {statistics.median(loops):.2f} s (median)")
    print(f"  {'beyond the loop':<26} {'wall s':>7} {'best':>7}")
    for name, values in beyond.items():
        print(f"  {name:<26} {statistics.median(values[1:]):7.3f} {min(values[1:]):7.3f}")
    worst = statistics.median(beyond["with store"][1:])
    print(f"run beyond its loop: {worst:.2f} s (bar {BAR_S})")
    return 1 if worst >= BAR_S else 0


if __name__ == "__main__":
    sys.exit(main())

"""What measuring a model costs beyond what cannot be avoided, for a small model on each runtime.

    python performance/model_overhead.py [--runtimes torch-eager,onnxruntime,…] [--rounds 3] [--quick]

Wall time of the whole `benchwright run model.py --runtime R`, less

- the script run plainly, once for finding its models, and once more for each build (or the script's part of a measuring
  process, as that tells it),
- the steps of the build, loading and the first call, as the events have them,
- the measured loop, from its beginning to its end.

What is left is ours: the command itself, starting processes, hooks, the cache of builds, the float64 reference, counting
work, recording and reporting. Builds begin with an empty cache in each round; a second run of the same target shows what
a cached build costs. Medians and the best are shown. Bar: at most 3 s a model and runtime.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BAR_S = 3.0
RUNTIMES = ("torch-eager", "torch-compile", "onnxruntime", "openvino", "aot-inductor")
OURS = ("reference",)  # a step that only the check needs
SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).eval()
with torch.no_grad():
    model(torch.randn(8, 256))
"""


def wall_s(argv: list[str], cwd: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{argv} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return wall


def unavoidable_s(stream: Path, plain_s: float) -> dict[str, float]:
    """Of one measuring process, from its events."""
    events: list[dict[str, Any]] = [json.loads(line) for line in stream.open()]
    times = {e["event"]: e["t"] for e in events if e["event"] in ("loop", "loop_end")}
    figures = {e["metric"]: e["values"][0] for e in events if e["event"] == "measured" and not e["labels"]}
    built = [e for e in events if e["event"] == "build_step" and not e["cached"] and e["step"] not in OURS]
    in_child = any(e["event"] == "build_step" and not e["cached"] for e in events) and "time.script" not in figures
    return {
        "script": figures.get("time.script", plain_s if in_child else 0.0),
        "build": sum(e["seconds"] for e in built),
        "load": figures["time.load"] + figures["time.first_run"],
        "loop": (times["loop_end"] - times["loop"]) / 1e9,
    }


def run_once(runtime: str, folder: Path, plain_s: float) -> tuple[float, dict[str, float]]:
    """What one run took, beyond the unavoidable and that by its parts."""
    base = folder / "base"
    words = ["run", "model.py", "--runtime", runtime, "--stop", "200", "--base", str(base), "--no-store", "--json"]
    wall = wall_s([sys.executable, "-m", "benchwright", *words], folder)
    newest = max((base / "runs").iterdir(), key=lambda run: run.stat().st_mtime_ns)
    [stream] = newest.glob("*.data")
    parts = {"finding": plain_s, **unavoidable_s(stream, plain_s)}
    return wall - sum(parts.values()), parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", default=",".join(RUNTIMES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, torch-eager and onnxruntime")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    runtimes = ["torch-eager", "onnxruntime"] if options.quick else options.runtimes.split(",")
    beyond: dict[tuple[str, str], list[float]] = {}
    shares: dict[tuple[str, str], dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "model.py").write_text(SCRIPT)
        os.environ["BENCHWRIGHT_BASE"] = str(folder / "base")
        for _ in range(rounds):
            for runtime in runtimes:
                shutil.rmtree(folder / "base", ignore_errors=True)
                for how in ("first", "again"):
                    plain_s = wall_s([sys.executable, "model.py"], folder)  # just before: the machine may be busy
                    took, parts = run_once(runtime, folder, plain_s)
                    beyond.setdefault((runtime, how), []).append(took)
                    shares[runtime, how] = parts
    print(f"{rounds} rounds; seconds, beyond what cannot be avoided (bar {BAR_S:g})")
    print(f"  {'runtime':<16} {'run':<6} {'median':>7} {'best':>7}   unavoidable, in the last round")
    for (runtime, how), values in beyond.items():
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in shares[runtime, how].items())
        print(f"  {runtime:<16} {how:<6} {statistics.median(values):7.2f} {min(values):7.2f}   {parts}")
    worst = max(statistics.median(values) for values in beyond.values())
    print(f"worst median: {worst:.2f} s")
    return 1 if worst > BAR_S else 0


if __name__ == "__main__":
    sys.exit(main())

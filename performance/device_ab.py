"""Whether an A/B on a GPU finds a slow-down of 2 % of the device, and finds nothing where there is nothing, in 3 minutes each.

    python performance/device_ab.py [--quick] [--budget 160s] [--dry]

A loop of matrix products, some ten milliseconds a step, launched by `bw ab` as two programs: with 2 % more products in the
treatment, then with as many in both. Prints each verdict and the time it took. Bars: the slow-down regressed (exit code 1), the
A/A not (exit code 0), each within 3 minutes. --quick: the slow-down alone (six pairs, the fewest for a verdict, take some 90 s).
Without a CUDA device it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _device import add_device_options, device_for

LOOP = """
import sys, torch
from benchprobe import iterate
products, size, device = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
a = torch.randn(size, size, device=device, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
out = torch.empty_like(a)
for _ in iterate("train", range(1_000_000), batch_size=1):
    for _ in range(products):
        torch.mm(a, a, out=out)
"""
LONGEST_S = 180


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the slow-down alone, in 110 s at most")
    parser.add_argument("--budget", default="160s", help="of each A/B (default 160s)")
    parser.add_argument("--stop", default="1.5s", help="how long each launch is measured (default 1.5s)")
    add_device_options(parser)
    given = parser.parse_args()
    device = device_for(given)
    if device is None:
        return 0
    budget = "110s" if given.quick else given.budget
    cases = {"2 % more products": (255, 1), "as many": (250, 0)}
    missed = 0
    with tempfile.TemporaryDirectory() as place:
        Path(place, "loop.py").write_text(LOOP)
        for name, (products, wanted) in list(cases.items())[: 1 if given.quick else 2]:
            missed += not _as_wanted(Path(place), name, products, wanted, device, budget, given.stop)
    print(f"bar: {'met' if not missed else f'missed in {missed}'}")
    return int(missed > 0)


def _as_wanted(place: Path, name: str, products: int, wanted: int, device: str, budget: str, stop: str) -> bool:
    size = 2048 if device == "cuda" else 48
    command = [sys.executable, "-m", "benchwright", "ab", "--budget", budget, "--stop", stop, "--json"]
    command += ["--control", f"args:250 {size} {device}", "--treatment", f"args:{products} {size} {device}", "loop.py"]
    began = time.monotonic()
    env = {**os.environ, "BENCHWRIGHT_BASE": str(place / "base")}
    done = subprocess.run(command, cwd=place, env=env, stdout=subprocess.PIPE, text=True, check=False)
    took_s = time.monotonic() - began
    for row in _rows(done.stdout):
        print(f"  {row}", flush=True)
    right = done.returncode == wanted and took_s <= LONGEST_S
    said = {0: "no regression", 1: "regressed"}.get(done.returncode, "could not measure")
    print(f"{name}: {said} (exit code {done.returncode}, wanted {wanted}) in {took_s:.0f} s", flush=True)
    return right


def _rows(text: str) -> list[str]:
    """The verdict on each metric."""
    if not text.strip().startswith("{"):
        return [text.strip()[-300:]]
    told = json.loads(text)
    rows = [
        f"{row['metric']:<22} {row['verdict']:<13} treatment ÷ control {row['ratio']:.4f} {row['interval']}"
        for row in told["effects"]
    ]
    return [*rows, *told["doubts"]]


if __name__ == "__main__":
    sys.exit(main())

"""Whether the largest batch found by `--size search` is the largest that fits, on a real GPU.

    python performance/device_batch.py

A suite of one benchmark: layers with hardly any arithmetic, whose activations fill the memory, so that a trial takes little more
than its start (some ten of them, about 90 s on an H200). After the search, the same program is run by hand with the size that was
found, which must fit, and with one 3 % larger, which must not. Without a CUDA device it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAIN = """
import argparse, torch
from benchprobe import iterate
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
batch = parser.parse_args().batch_size
torch.manual_seed(0)
scales = [torch.nn.Parameter(torch.ones((), device="cuda")) for _ in range(16)]
x = torch.randn(batch, 1 << 18, device="cuda")  # 1 MiB a sample, and some 33 that autograd keeps
for _ in iterate("train", range(12), batch_size=batch):
    y = x
    for scale in scales:
        y = torch.nn.functional.gelu(y * scale)
    y.sum().backward()
    for scale in scales:
        scale.grad = None
"""
SUITE = """\
filling:
  inherits: _defaults
  definition: .
  plan: {method: per_gpu}
  stop: {steps: 5}
  warmup: 2
  argv: {--batch-size: auto_batch(2048)}
"""


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if importlib.util.find_spec("torch") is None or not __import__("torch").cuda.is_available():
        print("no GPU here: nothing measured")
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "main.py").write_text(MAIN)
        (folder / "suite.yaml").write_text(SUITE)
        env = {**os.environ, "BENCHWRIGHT_BASE": str(folder / "base")}
        command = [
            sys.executable,
            "-m",
            "benchwright",
            "run",
            "suite.yaml",
            "--use-current-env",
            "--size",
            "search",
            "--json",
        ]
        began = time.monotonic()
        print("searching; what is tried is shown as it goes", flush=True)
        done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False)
        took_s = time.monotonic() - began
        (search,) = json.loads(done.stdout)["searches"]
        found = search["largest"]
        print(f"found {found} in {len(search['trials'])} trials, {took_s:.0f} s; {search['problem'] or 'no problem'}")
        for trial in search["trials"]:
            print(f"  {trial['batch_size']:8d} {'fits' if trial['fits'] else 'does not fit'} {trial['memory_bytes']}")
        fits, larger = _fits(folder, found), _fits(folder, int(found * 1.03))
    print(
        f"by hand: {found} {'fits' if fits else 'does not fit'}, {int(found * 1.03)} {'fits' if larger else 'does not fit'}"
    )
    print(f"bar 3 %: {'met' if fits and not larger else 'missed'}")
    return int(not fits or larger)


def _fits(folder: Path, batch: int) -> bool:
    command = [sys.executable, "main.py", "--batch-size", str(batch)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and "out of memory" not in done.stderr:
        raise SystemExit(done.stderr)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())

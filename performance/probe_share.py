"""What benchprobe costs a step of the shipped benchmarks, as a share of the step's own CPU time.

The probe's CPU per step, with a loss that is a tensor, is measured against the same loop without it, in one process and in turn;
the steps' CPU time comes from a run of the suite `quick`.

    python performance/probe_share.py [--quick]

Bar: at most 1 % for every benchmark.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LOOP = """
import json, sys, time
import torch
from benchprobe import give, iterate
loss = torch.tensor(1.0)
steps, rounds = 20_000, 7
def plain():
    begin = time.process_time()
    for _ in range(steps):
        loss.detach()
    return time.process_time() - begin
def probed(number):
    begin = time.process_time()
    for _ in iterate(f"loop{number}", range(steps), batch_size=1):
        give(loss=loss.detach())
    return time.process_time() - begin
pairs = [(plain(), probed(n)) for n in range(rounds)]
print(json.dumps([(b - a) / steps * 1e6 for a, b in pairs]))
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "loop.py").write_text(LOOP)
        config = json.dumps({"stream": str(root / "stream.data")})
        environment = {**os.environ, "BENCHPROBE_CONFIG": config, "OMP_NUM_THREADS": "1", "VIRTUAL_ENV": sys.prefix}
        done = subprocess.run(
            [sys.executable, str(root / "loop.py")], env=environment, stdout=subprocess.PIPE, check=True, text=True
        )
        cost_us = statistics.median(json.loads(done.stdout.strip().splitlines()[-1]))
        print(f"the probe: {cost_us:.2f} µs of CPU a step, everything included")
        del environment["BENCHPROBE_CONFIG"]
        base = ["--use-current-env", "--base", str(root / "base")]
        bw = [sys.executable, "-m", "benchwright"]
        subprocess.run([*bw, "prepare", "quick", *base], env=environment, check=True, stdout=subprocess.DEVNULL)
        stop = ["--stop", "10"] if "--quick" in sys.argv else ["--stop", "2s"]
        run = subprocess.run(
            [*bw, "run", "quick", *base, *stop, "--json", "-q"], env=environment, stdout=subprocess.PIPE, text=True
        )
        worst = 0.0
        for result in json.loads(run.stdout)["results"]:
            found = {m["metric"]: m["value"] for m in result["metrics"]}
            step_us = found["step_time"] * 1e6
            share = cost_us / step_us
            worst = max(worst, share)
            print(f"  {result['benchmark']:22} {step_us:10,.0f} µs a step  {share:8.3%}")
    print("the bar is met" if worst <= 0.01 else "THE BAR WAS MISSED")
    return 0 if worst <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())

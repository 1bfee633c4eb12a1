"""Eight emulated devices: how far apart the processes of one benchmark begin, and how long all are measured together.

The processes mostly sleep, at unequal speed, as jobs of eight GPUs do while this machine has two cores. The suite is
run through the command line with a system file that says `gpu: {count: 8}`.

    python performance/measured_together.py [--quick]

Bars: skew at the barrier under 50 ms, overlap 99 % or more, exactly `stop` measured observations in each process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MAIN = """
import os, sys, time
from benchprobe import iterate
device = int(os.environ.get("CUDA_VISIBLE_DEVICES", "0"))
for _ in iterate("train", range(1_000_000), batch_size=1):
    time.sleep(0.004 * (1 + device / 7))  # the last is half as fast as the first
"""
SUITE = """
together:
  inherits: _defaults
  definition: together
  plan: {{method: per_gpu}}
  max_duration: 300
  voir: {{options: {{stop: {stop}, interval: "{interval}s", skip: 2}}}}
"""
SYSTEM = "system: {arch: cuda, gpu: {count: 8}}\n"


def main() -> int:
    quick = "--quick" in sys.argv
    stop, interval, launches = (10, 0.2, 2) if quick else (20, 0.5, 5)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "together").mkdir()
        (root / "together" / "main.py").write_text(MAIN)
        (root / "suite.yaml").write_text(SUITE.format(stop=stop, interval=interval))
        (root / "system.yaml").write_text(SYSTEM)
        command = [sys.executable, "-m", "benchwright", "run", "suite.yaml", "--system", "system.yaml", "--json"]
        command += ["--base", "base", "--repeat", str(launches), "--no-store"]
        environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            print(done.stdout.decode(), f"exit code {done.returncode}")
            return 1
        run = json.loads(done.stdout)
        return judge(run, root / "base" / "runs" / run["id"], stop, launches)


def judge(run: dict[str, object], folder: Path, stop: int, launches: int) -> int:
    ok = True
    for launch in range(launches):
        begins, ends, counts = [], [], []
        suffix = f".R{launch}" if launches > 1 else ""
        streams = sorted(folder.glob(f"together{suffix}.D*.data"))
        for stream in streams:
            events = [json.loads(line) for line in stream.read_text().splitlines()]
            begins.append(next(e["t"] for e in events if e["event"] == "measure"))
            end = next(e for e in events if e["event"] == "stop")
            ends.append(end["t"])
            counts.append(len(end["detail"]["observations"]))
        skew_ms = (max(begins) - min(begins)) / 1e6
        lasted = [(end - begin) / 1e9 for begin, end in zip(begins, ends, strict=True)]
        # Each runs on, unmeasured, until the last has its observations: what matters is that all were alive meanwhile.
        print(
            f"launch {launch}: {len(streams)} processes, skew at the barrier {skew_ms:.1f} ms, "
            f"observations {sorted(set(counts))}, measured for {min(lasted):.2f}–{max(lasted):.2f} s"
        )
        ok = ok and len(streams) == 8 and skew_ms < 50 and set(counts) == {stop}
    overlap = next(iter(run["results"]))["overlap"]  # type: ignore[call-overload]
    print(f"overlap, worst launch: {overlap:.2%}")
    ok = ok and overlap >= 0.99
    print("all bars met" if ok else "A BAR WAS MISSED")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

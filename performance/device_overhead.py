"""What timing steps on a device costs: a loop of one matrix product a step, with the probe and without.

    python performance/device_overhead.py [--quick]

Needs a CUDA device; without one it says so and measures nothing. Blocks of both kinds take turns in one process; wall time,
since what is asked is whether the loop became slower. The ratio is the median over rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LOOP = """
import sys, time, torch
from statistics import median
from benchprobe import iterate
how, (size, steps, rounds) = sys.argv[1], map(int, sys.argv[2:])
a = torch.randn(size, size, device="cuda")
out, streams = torch.empty_like(a), [torch.cuda.Stream() for _ in range(2)]
graph = torch.cuda.CUDAGraph()

def product():
    torch.mm(a, a, out=out)

def on_another_stream():
    streams.append(streams.pop(0))
    with torch.cuda.stream(streams[0]):
        torch.mm(a, a, out=out)

product()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    product()
step = {"product": product, "graph": graph.replay, "streams": on_another_stream}[how]
for _ in range(200):
    step()
torch.cuda.synchronize()

def took_us(batches):
    begin = time.perf_counter()
    for _ in batches:
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps * 1e6

for _ in iterate("train", range(2000), batch_size=1):  # as after warm-up
    step()

pairs = [(took_us(range(steps)), took_us(iterate("train", range(steps), batch_size=1))) for _ in range(rounds)]
plain, probed = (median(column) for column in zip(*pairs))
ratio = median(p / q for q, p in pairs)
print(f"{how:8} {size:5d} x {size:<5d} without {plain:10.2f} us   with {probed:10.2f} us   ratio {ratio:.4f}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    rounds = 3 if parser.parse_args().quick else 7
    if importlib.util.find_spec("torch") is None or not __import__("torch").cuda.is_available():
        print("no CUDA device here: nothing measured")
        return
    source = str(Path(__file__).resolve().parent.parent / "src")
    small = (("graph", 64, 60_000), ("product", 64, 60_000), ("streams", 64, 30_000), ("graph", 256, 30_000))
    for how, size, steps in (*small, ("product", 256, 30_000), ("product", 2048, 10_000), ("product", 8192, 60)):
        with tempfile.TemporaryDirectory() as folder:
            config = json.dumps({"stream": str(Path(folder) / "loop.data"), "warmup": {"steps": 0}})
            path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
            env = {**os.environ, "BENCHPROBE_CONFIG": config, "PYTHONPATH": path}
            subprocess.run([sys.executable, "-c", LOOP, how, str(size), str(steps), str(rounds)], env=env, check=True)


if __name__ == "__main__":
    main()

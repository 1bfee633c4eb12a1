"""Whether what `--overlap` does beside a measured model changes its latency: starting up and checking on the other half of the cores.

    python performance/gpu_beside.py [--quick] [--dry]

One process calls a model at batch 1 on the GPU, whose time is mostly launching kernels from Python, and so the most easily
disturbed; a second one does what a neighbour does: imports torch in new processes, builds modules, and computes in float64 with
all its threads. The neighbour is stopped and continued block by block, in the order without, with, with, without, so that drift
cancels. Each has half of the cores. Bar: latency and rate with the neighbour within 1 % of those without, medians over all
blocks. The column "itself" compares blocks without it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from statistics import median

from _device import add_device_options, device_for

BAR = 0.01
MEASURED = """
import sys, time, torch
from statistics import median
from torch import nn
device, size = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
layers = [nn.Conv2d(3, 64, 3, padding=1)]
for _ in range(40):
    layers += [nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()]
model, x = nn.Sequential(*layers).eval().to(device), torch.randn(1, 3, size, size, device=device)
wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)

def block(seconds):
    times, end = [], time.perf_counter() + seconds
    begin = now = time.perf_counter()
    while now < end:
        model(x)
        wait()
        times.append(time.perf_counter() - now)
        now += times[-1]
    return median(times), (now - begin) / len(times)

with torch.inference_mode():
    block(2.0)
    print("ready", flush=True)
    for line in sys.stdin:
        print(*block(float(line)), flush=True)
"""
NEIGHBOUR = """
import subprocess, sys, torch
from torch import nn
print("ready", flush=True)
while True:
    starting = subprocess.Popen([sys.executable, "-c", "import torch, json; torch.nn.Linear(2048, 2048)"])
    model = nn.Sequential(*[nn.Conv2d(64, 64, 3, padding=1) for _ in range(8)]).double()
    while starting.poll() is None:
        with torch.no_grad():
            model(torch.randn(1, 64, 112, 112, dtype=torch.float64))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 rounds of four blocks of 0.5 s instead of 20 of 1 s")
    add_device_options(parser)
    given = parser.parse_args()
    device = device_for(given)
    if device is None:
        return 0
    cores = sorted(os.sched_getaffinity(0))
    middle = len(cores) // 2
    measured = _start(MEASURED, cores[:middle], device, "56" if device == "cuda" else "8")
    neighbour = _start(NEIGHBOUR, cores[middle:])
    try:
        return _told(measured, neighbour, *((10, 0.5) if given.quick else (20, 1.0)))
    finally:
        for process in (measured, neighbour):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(program: str, cores: list[int], *arguments: str) -> subprocess.Popen[str]:
    """In a session of its own, so that what it starts stops with it."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        raise SystemExit("it did not start")
    return process


def _told(measured: subprocess.Popen[str], neighbour: subprocess.Popen[str], rounds: int, seconds: float) -> int:
    rows = []
    print(f"{'':>8} {'without':>12} {'latency':>9} {'rate':>9} {'itself':>9}   with ÷ without", flush=True)
    for number in range(rounds):
        a, b, c, d = (_block(measured, neighbour, seconds, beside=beside) for beside in (False, True, True, False))
        rows.append(((b[0] + c[0]) / (a[0] + d[0]), (a[1] + d[1]) / (b[1] + c[1]), d[0] / a[0]))
        print(f"{number + 1:>8} {a[0] * 1e6:9.1f} µs " + " ".join(f"{each:9.4f}" for each in rows[-1]), flush=True)
    latency, rate, itself = (median(column) for column in zip(*rows, strict=True))
    worst = max(abs(latency - 1), abs(rate - 1))
    print(f"{'median':>8} {'':12} {latency:9.4f} {rate:9.4f} {itself:9.4f}")
    print(f"bar 1 %: {'met' if worst <= BAR else 'missed'} (worst {worst:.2%})")
    return int(worst > BAR)


def _block(
    measured: subprocess.Popen[str], neighbour: subprocess.Popen[str], seconds: float, *, beside: bool
) -> tuple[float, float]:
    """Median and mean seconds of a call."""
    os.killpg(neighbour.pid, signal.SIGCONT if beside else signal.SIGSTOP)
    assert measured.stdin is not None
    assert measured.stdout is not None
    measured.stdin.write(f"{seconds}\n")
    measured.stdin.flush()
    middle, mean = map(float, measured.stdout.readline().split())
    return middle, mean


if __name__ == "__main__":
    sys.exit(main())

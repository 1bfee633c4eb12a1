"""Whether what `--overlap` does beside a measured model changes its latency: starting up and checking on the other half of the
cores, and held back while the model's loop runs.

    python performance/gpu_beside.py [--rounds 60] [--quick] [--dry]

One process calls a model at batch 1 on the GPU, whose time is mostly launching kernels from Python, and so the most easily
disturbed; a second one does what a neighbour does: imports torch in new processes, builds modules, and computes in float64 with
all its threads. Each has half of the cores. A block of 0.1 s follows calls that do not count, in which the neighbour is first

    without   stopped, as in the block
    held      running; it is stopped before the block, and before a few calls that do not count, as `--overlap` does
    beside    running, as in the block: what it would cost if nobody were held back

in the order without, held, beside, beside, held, without. Virtual cores change their speed by half from one second to the
next, so blocks are short, and only neighbours in time are compared: a third of a second apart, in both orders. Bar: latency
and rate "held" within 1 % of "without", medians over all pairs, with the interval that holds 95 % of resampled medians. The
column "itself" compares the two blocks without it at the border of two rounds: it shows how steady the machine is.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from _device import add_device_options, device_for

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.executors.observer import usable_cores

BAR = 0.01
BLOCK_S, LEAD_S, SETTLE_S, WARM_UP_S = 0.1, 0.1, 0.06, 0.05
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
    parser.add_argument("--rounds", type=int, default=60, help="of 1.9 s each (default 60)")
    parser.add_argument("--quick", action="store_true", help="10 rounds")
    add_device_options(parser)
    given = parser.parse_args()
    device = device_for(given)
    if device is None:
        return 0
    cores = usable_cores(read_machine())  # as the halves of --overlap: threads of one core side by side
    middle = len(cores) // 2
    measured = _start(MEASURED, cores[:middle], device, "56" if device == "cuda" else "8")
    neighbour = _start(NEIGHBOUR, cores[middle:])
    try:
        return _told(measured, neighbour, 10 if given.quick else given.rounds)
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


class Block(NamedTuple):
    """Seconds of a call."""

    middle: float
    mean: float


def _told(measured: subprocess.Popen[str], neighbour: subprocess.Popen[str], rounds: int) -> int:
    kinds = ("without", "held", "beside")
    rows: dict[str, list[float]] = {name: [] for name in ("held", "held, rate", "beside", "itself")}
    print(f"{'round':>8} {'without':>12} " + " ".join(f"{name:>10}" for name in rows) + "   ÷ without", flush=True)
    before: Block | None = None
    for number in range(rounds):
        made = [(kind, _block(measured, neighbour, kind)) for kind in (*kinds, *reversed(kinds))]
        for half in (dict(made[:3]), dict(made[3:])):
            without, held = half["without"], half["held"]
            rows["held"].append(held.middle / without.middle)
            rows["held, rate"].append(without.mean / held.mean)
            rows["beside"].append(half["beside"].middle / without.middle)
        if before is not None:
            rows["itself"].append(made[0][1].middle / before.middle)
        before = made[-1][1]
        if number % 5 == 4:
            values = " ".join(f"{median(column):10.4f}" for column in rows.values())
            print(f"{number + 1:>8} {before.middle * 1e6:9.1f} µs {values}   so far", flush=True)
    for name, column in rows.items():
        low, high = _interval(column)
        apart = sum(abs(ratio - 1) > 0.1 for ratio in column)
        spread = f"{len(column)} pairs, {apart} of them more than 10 % apart"
        print(f"  {name:<10} {median(column):.4f}, 95 % {low:.4f} to {high:.4f}; {spread}")
    worst = max(abs(median(rows[name]) - 1) for name in ("held", "held, rate"))
    print(f"bar 1 %: {'met' if worst <= BAR else 'missed'} (worst {worst:.2%})")
    return int(worst > BAR)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    choose = random.Random(0)
    medians = sorted(median(choose.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[-51]


def _block(measured: subprocess.Popen[str], neighbour: subprocess.Popen[str], kind: str) -> Block:
    os.killpg(neighbour.pid, signal.SIGSTOP if kind == "without" else signal.SIGCONT)
    _called(measured, LEAD_S)
    if kind != "beside":
        os.killpg(neighbour.pid, signal.SIGSTOP)
    time.sleep(SETTLE_S)
    _called(measured, WARM_UP_S)
    return _called(measured, BLOCK_S)


def _called(measured: subprocess.Popen[str], seconds: float) -> Block:
    assert measured.stdin is not None
    assert measured.stdout is not None
    measured.stdin.write(f"{seconds}\n")
    measured.stdin.flush()
    middle, mean = map(float, measured.stdout.readline().split())
    return Block(middle, mean)


if __name__ == "__main__":
    sys.exit(main())

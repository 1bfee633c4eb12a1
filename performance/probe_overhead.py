"""What a measured loop costs: benchprobe against two floors and, with --peer, against voir 0.2.24.

    python performance/probe_overhead.py [--steps N] [--blocks N] [--peer] [--quick]

Every loop does nothing but `give(loss=…)`. CPU time is read around each block: `thread` is the loop's own thread, `all`
has the writer's share in it, with everything written by the end. Blocks of all kinds take turns, so that a disturbance
meets them alike; the least of each kind is the machine at its quietest, the median what it usually is.
Bars: thread <= 1 us, all <= 2 us, thread / naive <= 1.3, voir / all >= 80.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _peers import peer_environment

from benchprobe import noop as inert
from benchprobe.config import Config
from benchprobe.loop.measured_functions import functions
from benchprobe.loop.probe import Probe

PEER = "voir==0.2.24"
PEER_STEPS = 4000
PEER_INSTRUMENTS = """
import random, sys, time
from voir.instruments import early_stop, log, rate
from voir.overseer import Overseer

def instrument(ov):
    ov.require(log("value", "progress", "rate", "units", "loss", context="task"), rate("1s"),
               early_stop(key="rate", n=1000, task="train"))
    yield ov.phases.init

Overseer(instruments=[instrument], logfile=sys.argv[1])(sys.argv[2:])
"""
PEER_SCRIPT = """
import random, sys, time
from giving import give
from voir import iterate

losses = [random.random() for _ in range(997)]
steps = int(sys.argv[1])
for block in range(3):
    all_s, thread_s = time.process_time(), time.thread_time()
    for i in iterate("train", range(steps), report_batch=True, batch_size=64):
        give(loss=losses[i % 997])
    print((time.thread_time() - thread_s) / steps * 1e6, (time.process_time() - all_s) / steps * 1e6)
"""


class Cost(NamedTuple):
    """Of one step of one block, in microseconds of CPU time."""

    thread_us: float
    all_us: float


Losses = list[float]
Block = Callable[[int, Losses], None]


def bare(steps: int, losses: Losses) -> None:
    for i in range(steps):
        losses[i % 997]


def two_clock_reads(steps: int, losses: Losses) -> None:
    clock = time.perf_counter_ns
    for i in range(steps):
        losses[i % 997]
        clock()
        clock()


def naive(steps: int, losses: Losses) -> None:
    """The least that anybody would write: two stamps a step, and an append for `give`."""
    stamps: list[int] = []
    given: list[dict[str, Any]] = []
    clock = time.perf_counter_ns

    def iterate(iterable: Any) -> Iterator[Any]:
        for batch in iterable:
            stamps.append(clock())
            yield batch
            stamps.append(clock())

    def give(**values: Any) -> None:
        given.append(values)

    for i in iterate(range(steps)):
        give(loss=losses[i % 997])


def not_measured(steps: int, losses: Losses) -> None:
    iterate, give = inert.iterate, inert.give
    for i in iterate("train", range(steps), batch_size=64):
        give(loss=losses[i % 997])


def measured_by(probe: Probe) -> Block:
    iterate, give, _ = functions(probe)

    def measured(steps: int, losses: Losses) -> None:
        for i in iterate("train", range(steps), batch_size=64):
            give(loss=losses[i % 997])

    return measured


def cost(block: Block, steps: int, losses: Losses, finish: Callable[[], None]) -> Cost:
    all_s, thread_s = time.process_time(), time.thread_time()
    block(steps, losses)
    thread_s = time.thread_time() - thread_s
    finish()
    return Cost(thread_s / steps * 1e6, (time.process_time() - all_s) / steps * 1e6)


def measure(steps: int, blocks: int, stream: str, peer: Callable[[], list[Cost]] | None) -> dict[str, list[Cost]]:
    losses = [random.random() for _ in range(997)]  # full of digits, as real ones are
    probe = Probe(Config(stream, stop={"steps": 1 << 40}, warmup={"steps": 10}))
    kinds: dict[str, tuple[Block, Callable[[], None]]] = {
        "bare loop": (bare, lambda: None),
        "two clock reads": (two_clock_reads, lambda: None),
        "naive generator": (naive, lambda: None),
        "benchprobe, inert": (not_measured, lambda: None),
        "benchprobe": (measured_by(probe), probe.writer.flush),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in kinds}
    for number in range(blocks + 1):
        for name, (block, finish) in kinds.items():
            one = cost(block, steps, losses, finish)
            if number:  # the first of each only warms up
                costs[name].append(one)
        if peer is not None and number % 3 == 0:
            costs.setdefault(PEER, []).extend(peer())
    return costs


def recorded_steps(stream: str) -> int:
    with open(stream, encoding="utf-8") as lines:
        events = map(json.loads, lines)
        return sum(len(event["step_ns"]) for event in events if event["event"] == "steps")


def peer_in(folder: Path) -> Callable[[], list[Cost]]:
    """A function that runs some blocks of the peer, in a process of its own."""
    python = peer_environment(PEER.replace("==", "-"), [PEER]) / "bin" / "python"
    argv = [str(python), "instruments.py", "voir.data", "script.py", str(PEER_STEPS)]
    (folder / "instruments.py").write_text(PEER_INSTRUMENTS)
    (folder / "script.py").write_text(PEER_SCRIPT)

    def measure_peer() -> list[Cost]:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True)
        return [Cost(*map(float, line.split())) for line in done.stdout.splitlines()]

    return measure_peer


def show(name: str, costs: list[Cost]) -> None:
    thread, everything = sorted(c.thread_us for c in costs), sorted(c.all_us for c in costs)
    print(f"{name:20} {thread[0]:9.3f} {median(thread):9.3f} {everything[0]:9.3f} {median(everything):9.3f}")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=200_000)
    options.add_argument("--blocks", type=int, default=9)
    options.add_argument("--peer", action="store_true", help=f"measure {PEER} too, in an environment of its own")
    options.add_argument("--quick", action="store_true", help="3 blocks of 50,000 steps")
    given = options.parse_args()
    if given.quick:
        given.steps, given.blocks = 50_000, 3
    with tempfile.TemporaryDirectory() as folder:
        stream = str(Path(folder) / "loop.data")
        peer = peer_in(Path(folder)) if given.peer else None
        costs = measure(given.steps, given.blocks, stream, peer)
        recorded, expected = recorded_steps(stream), given.steps * (given.blocks + 1)
    print(f"{'us of CPU a step':20} {'thread':>9} {'(median)':>9} {'all':>9} {'(median)':>9}")
    for name, some in costs.items():
        show(name, some)
    ours, floor = costs["benchprobe"], costs["naive generator"]
    least = min(c.thread_us for c in ours) / min(c.thread_us for c in floor)
    middle = median(c.thread_us for c in ours) / median(c.thread_us for c in floor)
    print(f"benchprobe / naive, loop's own thread: {least:.2f} (median {middle:.2f}); bar 1.3")
    if given.peer:
        ratio = min(c.all_us for c in costs[PEER]) / min(c.all_us for c in ours)
        middle = median(c.all_us for c in costs[PEER]) / median(c.all_us for c in ours)
        print(f"{PEER} / benchprobe, all threads: {ratio:.0f} (median {middle:.0f}); bar 80")
    print(f"recorded {recorded} of {expected} steps")
    return 0 if recorded == expected else 1


if __name__ == "__main__":
    sys.exit(main())

"""Do benchprobe's warm-up and stop rules keep their word? Simulated loops whose true median is known.

    python performance/stop_rule_honesty.py --seed 1 --replicas 1000

Table 1: stop at ±1 %, at most 5,000 steps, beside a 95 % t-interval of the mean watched after every sample.
Table 2: where detected warm-up ends, and how far the median of the next 300 steps is from the steady one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from benchprobe.rules.precision import t_quantile
from benchprobe.rules.stop_rules import stop_rule
from benchprobe.rules.warmup_rules import warmup_rule

Array = Any  # numpy arrays of replicas x steps
Family = Callable[[np.random.Generator, int, int], Array]
CAP_STEPS = 5000
PRECISION = 0.01
MEASURED_STEPS = 300
MAX_WARMUP_STEPS = 4000


def gaussian(spread: float) -> Family:
    return lambda rng, replicas, steps: 1 + spread * rng.standard_normal((replicas, steps))


def autoregressive(correlation: float, spread: float = 0.02) -> Family:
    def draw(rng: np.random.Generator, replicas: int, steps: int) -> Array:
        noise = rng.standard_normal((steps, replicas))
        for step in range(1, steps):
            noise[step] = correlation * noise[step - 1] + np.sqrt(1 - correlation**2) * noise[step]
        return 1 + spread * noise.T

    return draw


def heavy_tail(rng: np.random.Generator, replicas: int, steps: int) -> Array:
    base = np.maximum(0.3, 1 + 0.02 * rng.standard_t(3, (replicas, steps)))
    return base * np.where(rng.random((replicas, steps)) < 0.01, 3, 1)


def bimodal(rng: np.random.Generator, replicas: int, steps: int) -> Array:
    clock = np.where(rng.random((replicas, steps)) < 0.3, 1.1, 1.0)
    return clock * (1 + 0.01 * rng.standard_normal((replicas, steps)))


def sticky_clock(rng: np.random.Generator, replicas: int, steps: int) -> Array:
    """The same two clock states as `bimodal`, but each is kept for some time: 10 slow steps, 23 fast ones on average."""
    slow = np.empty((steps, replicas), dtype=bool)
    slow[0] = rng.random(replicas) < 0.3
    for step in range(1, steps):
        chance = rng.random(replicas)
        slow[step] = np.where(slow[step - 1], chance >= 0.1, chance < 0.1 * 0.3 / 0.7)
    return np.where(slow.T, 1.1, 1.0) * (1 + 0.01 * rng.standard_normal((replicas, steps)))


def periodic(rng: np.random.Generator, replicas: int, steps: int) -> Array:
    return gaussian(0.02)(rng, replicas, steps) * np.where(np.arange(steps) % 10 == 9, 5, 1)


def transient(rng: np.random.Generator, replicas: int, steps: int) -> Array:
    return gaussian(0.02)(rng, replicas, steps) * warmup_shapes(steps)["decay over 100"]


FAMILIES: dict[str, Family] = {
    "iid Gaussian 2 %": gaussian(0.02),
    "iid Gaussian 5 %": gaussian(0.05),
    "heavy tail": heavy_tail,
    "bimodal": bimodal,
    "bimodal, sticky": sticky_clock,
    "AR(.6) 2 %": autoregressive(0.6),
    "AR(.8) 2 %": autoregressive(0.8),
    "drift, AR(.97) 2 %": autoregressive(0.97),
    "warm-up transient, 1 ms steps": transient,
    "warm-up transient, 100 ms steps": transient,
}

NOISES: dict[str, Family] = {
    "Gaussian 0.5 %": gaussian(0.005),
    "Gaussian 2 %": gaussian(0.02),
    "Gaussian 20 %": lambda rng, replicas, steps: np.maximum(0.1, gaussian(0.2)(rng, replicas, steps)),
    "every 10th x5": periodic,
    "bimodal": bimodal,
    "heavy tail": heavy_tail,
    "AR(.8)": autoregressive(0.8),
    "AR(.97)": autoregressive(0.97),
}


def warmup_shapes(steps: int) -> dict[str, Array]:
    """What each step's time is multiplied by."""
    at = np.arange(steps, dtype=float)
    slow_start = np.where(at < 3, np.array([1000, 30, 10] + [1] * (steps - 3)), 1.0)
    return {
        "none": np.ones(steps),
        "3 slow steps": slow_start,
        "40 slow steps": np.where(at < 40, 1.5, 1.0),
        "decay over 100": 1 + 0.5 * np.exp(-at / 100),
        "decay over 300": 1 + 0.5 * np.exp(-at / 300),
        "clock falls": 1 - 0.1 * np.exp(-at / 200),
    }


class Stopped(NamedTuple):
    centre: float
    half_width: float
    steps: int
    reached: bool


def stop_by_rule(steps_ns: list[int], detect_warmup: bool) -> Stopped:
    """Feed the steps to the real rules as a loop does, after warm-up detection if asked."""
    at = detected_warmup_steps(steps_ns) if detect_warmup else 0
    rule = stop_rule({"precision": PRECISION, "max_steps": CAP_STEPS})
    rule.begin(0)
    done, measured = False, 0
    while not done:
        chunk = steps_ns[at : at + rule.budget()]
        at, measured = at + len(chunk), measured + len(chunk)
        done = rule.add(chunk, 0)
    found = rule.detail()
    half_width = np.inf if found["half_width"] is None else found["half_width"]
    return Stopped(found["median_ns"], half_width, measured, found["reached"])


def detected_warmup_steps(steps_ns: list[int], max_seconds: float = 1e6) -> int:
    rule = warmup_rule({"max_seconds": max_seconds, "max_steps": MAX_WARMUP_STEPS})
    rule.begin(0)
    at = now_ns = 0
    while True:
        chunk = steps_ns[at : at + rule.budget()]
        at, now_ns = at + len(chunk), now_ns + sum(chunk)
        if rule.add(chunk, now_ns) is not None:
            return at


def stop_naively(series: Array, quantiles: Array) -> Stopped:
    """Watch the t-interval of the mean from the 5th sample on; stop the first time that it is within the precision."""
    count = np.arange(1, len(series) + 1)
    mean = np.cumsum(series) / count
    variance = (np.cumsum(series**2) - count * mean**2) / np.maximum(1, count - 1)
    half_width = quantiles * np.sqrt(np.maximum(0, variance) / count) / mean
    enough = np.flatnonzero((half_width <= PRECISION) & (count >= 5))
    last = int(enough[0]) if len(enough) else len(series) - 1
    return Stopped(float(mean[last]), float(half_width[last]), last + 1, bool(len(enough)))


def covers(stopped: Stopped, truth: float) -> bool:
    return abs(stopped.centre - truth) <= stopped.half_width * stopped.centre


def print_precision_table(seed: int, replicas: int) -> None:
    print(f"\nStop at ±{PRECISION:.0%}, at most {CAP_STEPS} steps; {replicas} replicas; coverage in % (nominal 95)\n")
    print("| family | covers | covers, where reached | mean steps | cap % | naive covers | naive steps |")
    print("|---|---|---|---|---|---|---|")
    quantiles = np.array([t_quantile(0.025, max(1, n)) for n in range(CAP_STEPS)])
    for number, (name, family) in enumerate(FAMILIES.items()):
        rng = np.random.default_rng([seed, number])
        warming = name.startswith("warm-up")
        step_ns = 1e8 if name.endswith("100 ms steps") else 1e6
        truth = family(np.random.default_rng(7), 1000, 4000) if not warming else np.ones(1)
        median, mean = float(np.median(truth)), float(np.mean(truth))
        if name.startswith(("AR", "drift", "iid")):
            median = mean = 1.0
        series = family(rng, replicas, CAP_STEPS + (MAX_WARMUP_STEPS if warming else 0))
        ours = [stop_by_rule(np.rint(one * step_ns).astype(int).tolist(), warming) for one in series]
        naive = [stop_naively(one[:CAP_STEPS], quantiles) for one in series]
        covered = [covers(one, median * step_ns) for one in ours]
        reached = [hit for hit, one in zip(covered, ours, strict=True) if one.reached]
        print(
            f"| {name} | {100 * np.mean(covered):.1f} | {100 * np.mean(reached) if reached else np.nan:.1f}"
            f" | {np.mean([one.steps for one in ours]):.0f} | {100 * (1 - len(reached) / replicas):.1f}"
            f" | {100 * np.mean([covers(one, mean) for one in naive]):.1f}"
            f" | {np.mean([one.steps for one in naive]):.0f} |",
            flush=True,
        )


def print_warmup_table(seed: int, replicas: int, step_ns: float, title: str) -> None:
    print(f"\nDetected warm-up, {title}; {replicas} replicas.")
    print(
        f"Each cell: median steps spent (95th percentile), mean bias of the median of the next {MEASURED_STEPS} steps\n"
    )
    print("| noise | " + " | ".join(warmup_shapes(8)) + " |")
    print("|---|" + "---|" * len(warmup_shapes(8)))
    for row, (name, family) in enumerate(NOISES.items()):
        cells = []
        for column, shape in enumerate(warmup_shapes(MAX_WARMUP_STEPS + MEASURED_STEPS).values()):
            rng = np.random.default_rng([seed, row, column])
            steady = family(rng, replicas, len(shape))
            spent, bias = [], []
            for one in steady:
                at = detected_warmup_steps(np.rint(one * shape * step_ns).astype(int).tolist())
                now = slice(at, at + MEASURED_STEPS)
                spent.append(at)
                bias.append(np.median((one * shape)[now]) / np.median(one[now]) - 1)
            cells.append(f"{np.median(spent):.0f} ({np.percentile(spent, 95):.0f}) {100 * np.mean(bias):+.1f} %")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=1000, help="for the first table; the others take a tenth")
    parser.add_argument("--quick", action="store_true", help="60 replicas")
    given = parser.parse_args()
    if given.quick:
        given.replicas = 60
    began = time.perf_counter()
    print_precision_table(given.seed, given.replicas)
    few = max(20, given.replicas // 10)
    print_warmup_table(given.seed, few, 1e6, "steps of 1 ms")
    print_warmup_table(given.seed, few, 1e8, "steps of 100 ms")
    print(f"\nseed {given.seed}, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

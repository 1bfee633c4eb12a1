"""How many unchanged histories are alarmed, and how many steps and trends are found? Histories of 100 runs, by noise family.

    python performance/history.py --seed 1
    python performance/history.py --peer --only Gaussian heavy .6
    python performance/history.py --quick
    python performance/history.py --long 40       unchanged series of 5,000 and 20,000 runs, so many of each

Each point is one run. A step of 2, 5 or 10 % comes at run 50; it is found if a change is placed within 3 runs of it. `--peer` adds
otava, asv and ruptures, each in an environment of its own, and Perfherder's rule (t > 7 over 12 runs before and after).
Ramps go over all runs, begin in the middle, or begin and end there; they are found if any change in their direction is told, and told
as a trend if its size is between half of theirs and one and a half times. Saw teeth rise slowly and fall at once.

Bars: at most 5 % of unchanged series alarmed in every family; at least 90 % of steps of 5 % found in noise of 2 %; 95 % of ramps of 5
to 100 % found in noise of 1 %, and 90 % told as a trend; 10,000 series in 60 s on one core; at most 1 % of series alarmed by a single
outlier.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _noise_families import _autoregressive
from _peers import peer_environment

from benchwright.analysis.change_points import change_points

Array = Any
Search = Callable[[Array], list[list[int]]]
COUNT, STEP_AT, NEAR = 100, 50, 3
STEPS = (0.02, 0.05, 0.10)
RAMPS = {"over all runs": (0, 100), "from run 40 on": (40, 100), "from run 30 to 70": (30, 70)}
RAMP_SIZES = (0.05, 0.10, 0.20, 0.50, 1.00)
SAW_TEETH = ((0.2, 33), (0.5, 33), (0.2, 50), (0.5, 50))  # height, runs from one fall to the next
MOST_FALSE, LEAST_FOUND, LEAST_RAMPS = 0.05, 0.90, (0.95, 0.90)
PEERS = {"otava": ["apache-otava==0.8.0"], "asv": ["asv==0.6.6"], "ruptures": ["ruptures==1.1.10"]}
MOST_PEER_SERIES = 200  # otava takes seconds for ten


class HistoryFamily(NamedTuple):
    name: str
    draw: Callable[[np.random.Generator, int], Array]
    bar: bool = True  # whether unchanged series must not be alarmed


def dependent(correlation: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, replicas: 1 + 0.02 * _autoregressive(rng, replicas, COUNT, correlation)


def hierarchical(rng: np.random.Generator, replicas: int) -> Array:
    launches = 0.01 * rng.standard_normal((replicas, COUNT, 1)) + 0.01 * rng.standard_normal((replicas, COUNT, 5))
    return np.median(1 + launches, axis=2)


def heavy_tail(rng: np.random.Generator, replicas: int) -> Array:
    spikes = np.where(rng.random((replicas, COUNT)) < 0.01, 3, 1)
    return np.maximum(0.3, 1 + 0.02 * rng.standard_t(3, (replicas, COUNT))) * spikes


def bimodal(rng: np.random.Generator, replicas: int) -> Array:
    slow = np.where(rng.random((replicas, COUNT)) < 0.3, 1.1, 1.0)
    return slow * (1 + 0.01 * rng.standard_normal((replicas, COUNT)))


def skewed(rng: np.random.Generator, replicas: int) -> Array:
    return 1 + 0.03 * rng.exponential(size=(replicas, COUNT))


def changing_spread(before: float, after: float) -> Callable[[np.random.Generator, int], Array]:
    spreads = np.where(np.arange(COUNT) < COUNT // 2, before, after)
    return lambda rng, replicas: 1 + spreads * rng.standard_normal((replicas, COUNT))


def bursts(rng: np.random.Generator, replicas: int) -> Array:
    """Three times, for 4 to 14 runs, the noise is five times as large."""
    begins, lengths = (rng.integers(low, high, (replicas, 3, 1)) for low, high in ((0, COUNT), (4, 15)))
    runs = np.arange(COUNT)
    noisy = ((runs >= begins) & (runs < begins + lengths)).any(axis=1)
    return 1 + np.where(noisy, 0.05, 0.01) * rng.standard_normal((replicas, COUNT))


def clustered(shock: float, memory: float) -> Callable[[np.random.Generator, int], Array]:
    """GARCH(1, 1) with a spread of 2 % on average."""

    def draw(rng: np.random.Generator, replicas: int) -> Array:
        fresh = rng.standard_normal((2 * COUNT, replicas))
        variance = np.ones(replicas)
        for run in range(len(fresh)):
            fresh[run] *= np.sqrt(variance)
            variance = 1 - shock - memory + shock * fresh[run] ** 2 + memory * variance
        return 1 + 0.02 * fresh[COUNT:].T

    return draw


def random_walk(rng: np.random.Generator, replicas: int) -> Array:
    return np.exp(np.cumsum(0.01 * rng.standard_normal((replicas, COUNT)), axis=1))


def straight(rng: np.random.Generator, replicas: int) -> Array:
    return 1 + 0.1 * np.arange(COUNT) / COUNT + 0.02 * rng.standard_normal((replicas, COUNT))


FAMILIES = (
    HistoryFamily("Gaussian 2 %", dependent(0.0)),
    HistoryFamily("hierarchical 1 % + 1 %", hierarchical),
    HistoryFamily("heavy tail (t3 2 %, spikes)", heavy_tail),
    HistoryFamily("bimodal, 30 % at 1.1", bimodal),
    HistoryFamily("skewed (exponential 3 %)", skewed),
    HistoryFamily("AR(.6) 2 %", dependent(0.6)),
    HistoryFamily("AR(.8) 2 %", dependent(0.8)),
    HistoryFamily("AR(.9) 2 %", dependent(0.9)),
    HistoryFamily("drift, AR(.97) 2 %", dependent(0.97)),
    HistoryFamily("random walk, 1 % a run", random_walk),
    HistoryFamily("spread 1 to 2 %", changing_spread(0.01, 0.02)),
    HistoryFamily("spread 1 to 5 %", changing_spread(0.01, 0.05)),
    HistoryFamily("spread 5 to 1 %", changing_spread(0.05, 0.01)),
    HistoryFamily("bursts, 1 and 5 %", bursts),
    HistoryFamily("clustered (GARCH .2, .7)", clustered(0.2, 0.7)),
    HistoryFamily("clustered (GARCH .4, .55)", clustered(0.4, 0.55)),
    HistoryFamily("straight drift of 10 %", straight, bar=False),
)


def ours(many: Array) -> list[list[int]]:
    return [[point.place for point in change_points(series)] for series in many]


def perfherder(many: Array) -> list[list[int]]:
    """Each run against 12 before and 12 from it on; of neighbours beyond the limit, the most extreme."""
    found = []
    for series in many:
        scores = [_t(series[i - 12 : i], series[i : i + 12]) if 12 <= i <= COUNT - 12 else 0.0 for i in range(COUNT)]
        found.append([i for i, t in enumerate(scores) if t > 7 and t == max(scores[max(0, i - 12) : i + 13])])
    return found


def _t(before: Array, after: Array) -> float:
    spread = math.sqrt(before.var(ddof=1) / len(before) + after.var(ddof=1) / len(after))
    return abs(float(after.mean() - before.mean())) / spread


def peer(name: str) -> Search:
    """Raises CalledProcessError if it cannot be installed."""
    python = peer_environment(f"change-points-{name}", PEERS[name]) / "bin" / "python"
    script = str(Path(__file__).with_name("_change_point_peers.py"))

    def search(many: Array) -> list[list[int]]:
        told = json.dumps([list(map(float, series)) for series in many])
        out = subprocess.run([str(python), script, name], input=told, capture_output=True, text=True, check=True).stdout
        found: list[list[int]] = json.loads(out)
        return found

    return search


def peers() -> dict[str, Search]:
    found: dict[str, Search] = {"Perfherder": perfherder}
    for name in PEERS:
        try:
            found[name] = peer(name)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name} is absent: it could not be installed ({error})", file=sys.stderr)
    return found


def shares(search: Search, series: Array) -> tuple[float, list[float]]:
    """Alarmed without a change, and found of each step."""
    alarmed = float(np.mean([bool(places) for places in search(series)]))
    found = []
    for step in STEPS:
        stepped = series * np.where(np.arange(COUNT) >= STEP_AT, 1 + step, 1)
        near = [any(abs(place - STEP_AT) <= NEAR for place in places) for places in search(stepped)]
        found.append(float(np.mean(near)))
    return alarmed, found


def print_ramps(rng: np.random.Generator, replicas: int) -> list[str]:
    """Prints a row for each shape; returns the bars missed."""
    bad = []
    slack = 2 * math.sqrt(0.1 * 0.9 / replicas) if replicas < 400 else 0.0
    print(f"\n| ramp in noise of 1 %, % found, told as a trend | {' | '.join(f'{size:+.0%}' for size in RAMP_SIZES)} |")
    print("|" + "---|" * (len(RAMP_SIZES) + 1))
    for name, (begin, end) in RAMPS.items():
        along = np.clip((np.arange(COUNT) - begin) / (end - begin), 0, 1)
        shares = []
        for size in RAMP_SIZES:
            many = (1 + size * along) * (1 + 0.01 * rng.standard_normal((replicas, COUNT)))
            # As a rate, the same change falls.
            many[::2] = 1 / many[::2]
            found = [_ramp_found(series, math.log1p(size) * (1 if n % 2 else -1)) for n, series in enumerate(many)]
            shares.append(np.mean(found, axis=0))
            if any(shares[-1] < np.array(LEAST_RAMPS) - slack):
                bad.append(f"ramp of {size:.0%} {name}: only {shares[-1][0]:.0%} found, {shares[-1][1]:.0%} as a trend")
        print(f"| {name} | {' | '.join(f'{a * 100:.0f}, {b * 100:.0f}' for a, b in shares)} |", flush=True)
    return bad


def _ramp_found(series: Array, size: float) -> tuple[bool, bool]:
    """Whether a change in its direction is told, and whether a trend of its size."""
    sizes = [(math.log(point.ratio) / size, point.drifting) for point in change_points(series)]
    return any(share > 0 for share, _ in sizes), any(drifting and 0.5 <= share <= 1.5 for share, drifting in sizes)


def print_saw_teeth(rng: np.random.Generator, replicas: int) -> None:
    print("\n| saw teeth in noise of 1 % | alarmed | trends a series | falls found |")
    print("|---|---|---|---|")
    for size, period in SAW_TEETH:
        level = 1 + size * (np.arange(COUNT) % period) / period
        found = [change_points(s) for s in level * (1 + 0.01 * rng.standard_normal((replicas, COUNT)))]
        falls = [place for place in range(period, COUNT - NEAR, period) if COUNT - place > NEAR]
        hits = [any(abs(p.place - fall) <= NEAR and p.ratio < 1 for p in points) for points in found for fall in falls]
        trends = np.mean([sum(p.drifting and p.ratio > 1 for p in points) for points in found])
        alarmed = np.mean([bool(points) for points in found])
        print(
            f"| {size:.0%} every {period} runs | {alarmed * 100:.0f} % | {trends:.1f} | {np.mean(hits) * 100:.0f} % |"
        )


def outliers_alarmed(rng: np.random.Generator, replicas: int) -> int:
    """Series with one outlier, early, late or in the middle, that are alarmed though they are not without it."""
    alarmed = 0
    for series in 1 + 0.02 * rng.standard_normal((replicas, COUNT)):
        with_one = series.copy()
        with_one[rng.integers(0, COUNT)] *= rng.choice([0.2, 0.7, 1.5, 10])
        alarmed += bool(change_points(with_one)) and not change_points(series)
    return alarmed


def long_alarmed(seed: int, replicas: int) -> list[str]:
    """Prints how many long unchanged series are alarmed, and what one costs; returns the bars missed."""
    bad = []
    print("| unchanged runs | family | alarmed | CPU a series |\n|---|---|---|---|")
    for count in (5_000, 20_000):
        for name, correlation in (("Gaussian 2 %", 0.0), ("AR(.6) 2 %", 0.6)):
            rng = np.random.default_rng([seed, count, int(correlation * 10)])
            cpu = time.process_time()
            many = 1 + 0.02 * _autoregressive(rng, replicas, count, correlation)
            alarmed = sum(map(bool, ours(many)))
            each = (time.process_time() - cpu) / replicas
            print(f"| {count:,} | {name} | {alarmed} of {replicas} | {each:.2f} s |", flush=True)
            if alarmed / replicas > MOST_FALSE + 2 * math.sqrt(MOST_FALSE * (1 - MOST_FALSE) / replicas):
                bad.append(f"{alarmed} of {replicas} series of {count:,} runs alarmed, {name}")
    return bad


def missed(family: HistoryFamily, alarmed: float, found: Sequence[float], replicas: int) -> list[str]:
    slack = 0.0 if replicas >= 2000 else 2 * math.sqrt(MOST_FALSE * (1 - MOST_FALSE) / replicas)
    bad = []
    if family.bar and alarmed > MOST_FALSE + slack:
        bad.append(f"{family.name}: {alarmed:.1%} of unchanged series alarmed")
    if family.name == "Gaussian 2 %" and found[1] < LEAST_FOUND:
        bad.append(f"{family.name}: only {found[1]:.0%} of steps of 5 % found")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="100 replicas")
    parser.add_argument("--peer", action="store_true", help="install and run other tools, too")
    parser.add_argument("--only", nargs="*", metavar="WORD", help="only families whose name has one of these words")
    parser.add_argument("--long", type=int, metavar="N", help="only long unchanged series, N of each length")
    options = parser.parse_args()
    if options.long:
        for text in (bad := long_alarmed(options.seed, options.long)):
            print(f"bar missed: {text}", file=sys.stderr)
        return 1 if bad else 0
    replicas = 100 if options.quick else options.replicas
    others = peers() if options.peer else {"Perfherder": perfherder}
    start = time.perf_counter()
    bad = []
    print(f"{replicas} series of {COUNT} runs, seed {options.seed}: % of unchanged alarmed / found of 2, 5, 10 %\n")
    print("| family | ours | " + " | ".join(others) + " |")
    print("|" + "---|" * (len(others) + 2))
    for number, family in enumerate(FAMILIES):
        if options.only and not any(word in family.name for word in options.only):
            continue
        series = family.draw(np.random.default_rng([options.seed, number]), replicas)
        rows = {"ours": shares(ours, series)}
        rows |= {name: shares(search, series[:MOST_PEER_SERIES]) for name, search in others.items()}
        told = [
            f"{alarmed * 100:.1f} / {', '.join(f'{f * 100:.0f}' for f in found)}" for alarmed, found in rows.values()
        ]
        print(f"| {family.name} | {' | '.join(told)} |", flush=True)
        bad += missed(family, *rows["ours"], replicas)
    rng = np.random.default_rng([options.seed, 99])
    alarmed = outliers_alarmed(rng, replicas)
    print(f"\n{alarmed} of {replicas} Gaussian series alarmed by one outlier alone")
    if alarmed > 0.01 * replicas:
        bad.append(f"{alarmed} of {replicas} series alarmed by one outlier alone")
    bad += print_ramps(rng, max(50, replicas // 5))
    print_saw_teeth(rng, max(50, replicas // 10))
    many = dependent(0.3)(rng, max(200, replicas // 2))
    cpu = time.process_time()
    ours(many)
    each = (time.process_time() - cpu) / len(many)
    print(f"10,000 series of {COUNT} runs take {each * 10_000:.0f} s of one core")
    if each * 10_000 > 60:
        bad.append(f"10,000 series take {each * 10_000:.0f} s")
    print(f"\n{time.perf_counter() - start:.0f} s")
    for text in bad:
        print(f"bar missed: {text}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

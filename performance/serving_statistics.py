"""Whether intervals of percentiles cover, growing queues are found, warm-up is not imagined, and A/As end without a verdict.

    python performance/serving_statistics.py [--series 100] [--real [--pairs 20] [--tries 50 20]]

Simulated times in the system of one queue (M/M/1 in equilibrium at 50 and 80 % load) and independent ones, whose percentiles are
known; queues at 105 to 150 % load; and pairs of launches whose time per token is the same, or 5 % longer. With --real instead: pairs
of launches of the client itself, by turns against two servers that wait 5 ms, or 5 and 5.25 ms, before each token.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))
from known_servers import known_server

from benchload.client import Client, Event
from benchload.settings import parse
from benchwright.analysis.comparison.compare import DEFAULT_MARGIN
from benchwright.analysis.statistics.ratio_tests import FEWEST_FOR_RANKS, paired_ratio, pairs_agree
from benchwright.analysis.statistics.request_series import percentile_interval, queue_grew, settled_from

PERCENTS = (50.0, 90.0, 99.0)


def queue(
    load: float, count: int, source: random.Random, settle: int = 2000
) -> tuple[list[float], list[int], list[int]]:
    """Times in the system, and when requests came and left in ns; the mean service takes 1 s."""
    wait, clock = 0.0, 0.0
    times, came, left = [], [], []
    for n in range(count + settle):
        service = source.expovariate(1.0)
        if n >= settle:
            times.append(wait + service)
            came.append(round(clock * 1e9))
            left.append(round((clock + wait + service) * 1e9))
        gap = source.expovariate(load)
        clock, wait = clock + gap, max(0.0, wait + service - gap)
    return times, came, left


def intervals(series: int, source: random.Random) -> None:
    print("load  requests  covered of those shown (p50, p90, p99)              warm-up imagined   queue imagined")
    for load, count in itertools.product((0.0, 0.5, 0.8), (1000, 4000, 16000)):
        covered, shown = dict.fromkeys(PERCENTS, 0), dict.fromkeys(PERCENTS, 0)
        warm = grew = 0
        for _ in range(series):
            times, came, left = queue(load or 0.001, count, source, 2000 if load else 0)
            for percent in PERCENTS:
                found = percentile_interval(times, percent)
                if found is not None:
                    shown[percent] += 1
                    truth = -math.log(1 - percent / 100) / (1 - (load or 0.001))
                    covered[percent] += found.low <= truth <= found.high
            warm += settled_from(times) > 0
            grew += queue_grew(came, left)
        words = "  ".join(f"{covered[p]:4} of {shown[p]:4}" for p in PERCENTS)
        print(f"{load:4.0%} {count:8}   {words} {warm:14} of {series} {grew:8}", flush=True)


def overload(series: int, source: random.Random) -> None:
    for load, count in itertools.product((1.05, 1.2, 1.5), (200, 1000)):
        found = sum(queue_grew(*queue(load, count, source, 0)[1:]) for _ in range(series))
        print(f"load {load:.0%}, {count} requests: the growing queue was found in {found} of {series}", flush=True)


def verdicts(source: random.Random) -> None:
    """Each launch: the median time per token of 100 requests, under noise of its own and of the machine."""
    for slower, tries in ((1.0, 50), (1.05, 20)):
        found = 0
        for _ in range(tries):
            sides: tuple[list[float], list[float]] = ([], [])
            for _ in range(20):
                machine = source.gauss(1, 0.01)
                for side, factor in zip(sides, (1.0, slower), strict=True):
                    side.append(
                        median(factor * machine * source.lognormvariate(math.log(0.02), 0.1) for _ in range(100))
                    )
            found += called(sides)
        print(f"{slower - 1:+.0%} decode: called in {found} of {tries}", flush=True)


def called(sides: tuple[list[float], list[float]]) -> bool:
    """By the rule of `bw ab`, for a single metric."""
    found = paired_ratio(*sides, 0.99)
    agree = len(sides[0]) >= FEWEST_FOR_RANKS or pairs_agree(*sides)
    beyond = abs(math.log(found.ratio)) > math.log1p(DEFAULT_MARGIN)
    return beyond and agree and not found.interval.low <= 1 <= found.interval.high


def token_times_s(url: str) -> dict[str, float]:
    """Of one short launch, four users with three requests of 16 tokens each: medians over requests, and over chunks."""
    words = [url, "--model", "known", "--load", "users:4", "--requests", "12", "--workload", "random:in=8,out=16"]
    events: list[Event] = []
    Client(parse(words), events.append).run()
    rows = [
        row
        for e in events
        if e["event"] == "requests"
        for row in zip(e["first"], e["last"], e["tokens_out"], e["gaps"], strict=True)
    ]
    return {
        "time.per_token": median((last - first) / (tokens - 1) for first, last, tokens, _ in rows) / 1e9,
        "time.chunk_gap": median(gap for row in rows for gap in row[3]) / 1e9,
    }


def real_verdicts(pairs: int, tries: tuple[int, int]) -> None:
    """Sides begin pairs by turns."""
    cores = sorted(os.sched_getaffinity(0))
    for slower, count in zip((1.0, 1.05), tries, strict=True):
        with (
            known_server("--gap", "0.005", "--core", str(cores[0])) as control,
            known_server("--gap", str(0.005 * slower), "--core", str(cores[0])) as treatment,
        ):
            os.sched_setaffinity(0, {cores[-1]})
            loads: list[float] = []
            found: dict[str, list[bool]] = {}
            ratios: dict[str, list[float]] = {}
            for _ in range(count):
                sides: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
                for pair in range(pairs):
                    for side in (0, 1) if pair % 2 else (1, 0):
                        sides[side].append(token_times_s((control, treatment)[side]))
                for metric in sides[0][0]:
                    values = ([launch[metric] for launch in sides[0]], [launch[metric] for launch in sides[1]])
                    found.setdefault(metric, []).append(called(values))
                    ratios.setdefault(metric, []).append(paired_ratio(*values, 0.99).ratio)
                loads.append(os.getloadavg()[0])
            os.sched_setaffinity(0, cores)
        where = f"load of the machine {min(loads):.1f} to {max(loads):.1f} on {len(cores)} cores"
        print(f"{slower - 1:+.0%} decode, real, {pairs} pairs; {where}", flush=True)
        for metric, calls in found.items():
            spread = f"effects {min(ratios[metric]) - 1:+.1%} to {max(ratios[metric]) - 1:+.1%}"
            print(f"    {metric} called in {sum(calls)} of {count} ({spread})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="5 series")
    parser.add_argument("--real", action="store_true", help="verdicts of the real client alone")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--tries", type=int, nargs=2, default=(50, 20), help="with equal servers, with a slower one")
    options = parser.parse_args()
    options.series = 5 if options.quick else options.series
    if options.real:
        return real_verdicts(options.pairs, (2, 2) if options.quick else tuple(options.tries))
    source = random.Random(1)
    intervals(options.series, source)
    overload(options.series, source)
    verdicts(source)


if __name__ == "__main__":
    main()

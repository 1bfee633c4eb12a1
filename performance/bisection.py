"""How often is the right commit found, and in how many launches? 64 commits, one of which changed the metric.

    python performance/bisection.py --seed 1
    python performance/bisection.py --quick

`benchwright.analysis.bisection` beside two rules as their tools document them: `asv find` (each commit measured once; into the
half with the larger rise) and `git bisect run` with a script that takes the mean of 10 launches and compares it with the
middle between the good and the bad commit.

Bars: with noise of 3 %, a step of 5 % is found in 97 % of cases with 50 launches on average, one of 2 % in 90 % with 250. Stopped at
a chance of 95 %, at least 95 % are right, with Student's t (3 degrees of freedom), too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from benchwright.analysis.bisection import Bisection

COMMITS = 64
MOST = 600  # launches; who needs more has failed
Measure = Callable[[int], float]
Noise = Callable[[np.random.Generator], float]


class Found(NamedTuple):
    """`sure`: how sure the rule says it is."""

    place: int
    launches: int
    sure: float = 0.0


class Case(NamedTuple):
    noise: str
    spread: float
    step: float
    least_right: float
    most_launches: float
    enough: float = 0.97  # the chance at which to stop


NOISES: dict[str, Noise] = {
    "Gaussian": lambda rng: float(rng.standard_normal()),
    "t3": lambda rng: float(rng.standard_t(3)) / 3**0.5,
    "t3, 1 % spikes": lambda rng: float(rng.standard_t(3)) / 3**0.5 + 60 * (rng.random() < 0.01),
}

CASES = (
    Case("Gaussian", 0.01, 0.02, 0.95, 50),
    Case("Gaussian", 0.03, 0.05, 0.97, 50),
    Case("Gaussian", 0.03, 0.10, 0.97, 50),
    Case("Gaussian", 0.03, 0.02, 0.90, 250, enough=0.94),
    Case("t3", 0.03, 0.05, 0.95, 50),
    Case("t3, 1 % spikes", 0.03, 0.05, 0.95, 50),
)


def ours(enough: float) -> Callable[[Measure], Found]:
    def search(measure: Measure) -> Found:
        bisection = Bisection(COMMITS, enough=enough)
        while bisection.launches < MOST and (place := bisection.next_place()) is not None:
            bisection.observe(place, measure(place))
        sure = sum(bisection.posterior()[place] for place in bisection.suspects)
        return Found(bisection.best, bisection.launches, sure)

    return search


def asv_find(measure: Measure) -> Found:
    """Goes into the half with the larger rise, each commit measured once, in two processes (asv/commands/find.py)."""
    low, high = 0, COMMITS - 1
    known: dict[int, float] = {}

    def value(place: int) -> float:
        if place not in known:
            known[place] = (measure(place) + measure(place)) / 2  # two processes
        return known[place]

    while high - low > 1:
        middle = (low + high) // 2
        first, between, last = value(low), value(middle), value(high)
        if between - first > last - between:
            high = middle
        else:
            low = middle
    return Found(high, 2 * len(known))


def git_bisect(measure: Measure) -> Found:
    def mean(place: int) -> float:
        return sum(measure(place) for _ in range(10)) / 10

    limit = (mean(0) + mean(COMMITS - 1)) / 2
    low, high, launches = 0, COMMITS - 1, 20
    while high - low > 1:
        middle = (low + high) // 2
        launches += 10
        if mean(middle) > limit:
            high = middle
        else:
            low = middle
    return Found(high, launches)


def tried(search: Callable[[Measure], Found], case: Case, replicas: int, seed: int) -> tuple[float, float, float]:
    """The share that is right, the mean number of launches, and how sure the rule was on average."""
    rng = np.random.default_rng(seed)
    right, launches, sure = 0, 0, 0.0
    for _ in range(replicas):
        changed = int(rng.integers(1, COMMITS))

        def measure(place: int, changed: int = changed) -> float:
            return 1 + case.step * (place >= changed) + case.spread * NOISES[case.noise](rng)

        found = search(measure)
        right += found.place == changed
        launches += found.launches
        sure += found.sure
    return right / replicas, launches / replicas, sure / replicas


def unchanged(replicas: int, seed: int) -> float:
    """The share of searches that convict a commit though nothing changed."""
    rng = np.random.default_rng(seed)
    convicted = 0
    for _ in range(replicas):
        bisection = Bisection(COMMITS)
        while bisection.launches < 100 and (place := bisection.next_place()) is not None:
            bisection.observe(place, 1 + 0.03 * rng.standard_normal())
        convicted += bisection.chance >= bisection.enough
    return convicted / replicas


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="25 replicas; the hardest case 10")
    parser.add_argument("--only", type=int, nargs="*", metavar="CASE", help="the numbers of cases, from 0")
    options = parser.parse_args()
    replicas = 25 if options.quick else options.replicas
    start, bad = time.perf_counter(), []
    print(f"{COMMITS} commits, {replicas} replicas, seed {options.seed}: % right / mean launches\n")
    print(
        "| noise | sd | step | ours, stop at .97 (step of 2 % in 3 %: .94) | at .95 | asv find | git bisect, 10 launches each |"
    )
    print("|" + "---|" * 7)
    for number, case in enumerate(CASES):
        if options.only and number not in options.only:
            continue
        times = max(10, replicas // 4) if case.step < case.spread else replicas
        slack = 2 * (0.05 / times) ** 0.5
        shares = {}
        for name, search in (("bar", ours(case.enough)), ("0.95", ours(0.95)), ("asv", asv_find), ("git", git_bisect)):
            shares[name] = tried(search, case, 2000 if name in ("asv", "git") else times, options.seed)
        row = " | ".join(
            f"{right * 100:.1f} / {launches:.0f}" + (f" (said {sure:.0%})" if sure else "")
            for right, launches, sure in shares.values()
        )
        print(f"| {case.noise} | {case.spread:.0%} | {case.step:.0%} | {row} |", flush=True)
        right, launches, _ = shares["bar"]
        if right < case.least_right - slack or launches > case.most_launches:
            bad.append(f"{case}: {right:.1%} right in {launches:.0f} launches")
        if shares["0.95"][0] < min(0.95, case.least_right) - slack:
            bad.append(f"{case}: stopped at 95 %, only {shares['0.95'][0]:.1%} are right")
    if not options.only:
        convicted = unchanged(replicas, options.seed)
        print(f"\nnothing changed: {convicted:.1%} of searches convict a commit within 100 launches")
        if convicted > 0.05 + 2 * (0.05 / replicas) ** 0.5:
            bad.append(f"nothing changed, and {convicted:.1%} convict a commit")
    print(f"\n{time.perf_counter() - start:.0f} s")
    for text in bad:
        print(f"bar missed: {text}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

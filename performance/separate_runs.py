"""How often are comparisons wrong, and what do they find? Launches of separate runs and of alternating pairs, by noise family.

    python performance/separate_runs.py --seed 1
    python performance/separate_runs.py --quick

A series of 2n launches of an unchanged program is divided into control and treatment: the first n against the last n (separate
runs), or A B B A … (pairs). Then the treatment is made slower by a known amount. All of it goes through `compare` and
`compare_interleaved`, with the margin and the run-to-run allowance that `bw compare` has by default.

Bars: separate runs and pairs call at most 2 % of unchanged programs different, and at most 1 % of programs that are 5 % slower the
same, unless the machine itself made a step of just that size between the runs, which nobody could see; 10 % are found in 95 % of
separate runs of a quiet machine; pairs find 5 % with 20 pairs in 99 % where noise is not spiked.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _comparisons import result_of, run_of
from _noise_families import FAMILIES, Family

from benchwright.analysis.comparison.compare import compare, compare_interleaved
from benchwright.core.comparison import Verdict

Array = Any
COUNTS = (8, 20)
SAMPLES = 5
MARGIN = 0.02
MOST_FALSE, MOST_FALSE_SAME = 0.02, 0.01
CHANGED = (Verdict.REGRESSED, Verdict.IMPROVED)
QUIET = ("iid Gaussian 2 %", "hierarchical 1 % + 1 %")
STEADY_PAIRS = (*QUIET, "AR(.6) between launches", "AR(.8) between launches", "AR(.9) between launches")


def _linear(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    slope = 1 + 0.1 * np.arange(launches) / launches
    return (1 + 0.01 * rng.standard_normal((replicas, launches, samples))) * slope[:, None]


def _random_walk(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    level = np.exp(np.cumsum(0.01 * rng.standard_normal((replicas, launches)), axis=1))
    return level[..., None] * (1 + 0.005 * rng.standard_normal((replicas, launches, samples)))


MORE = (
    Family("straight drift of 10 %", _linear, False, 1.0),
    Family("random walk, 1 % a launch", _random_walk, False, 1.0),
)


def separate(series: Array, effect: float) -> Verdict:
    half = len(series) // 2
    before, after = (
        run_of("A", result_of("b", series[:half])),
        run_of("B", result_of("b", series[half:] * (1 + effect))),
    )
    (found,) = compare(before, after, margin=MARGIN).effects
    return found.verdict


def in_pairs(series: Array, effect: float) -> Verdict:
    order = np.arange(len(series)).reshape(-1, 2)
    order[1::2] = order[1::2, ::-1]
    control, treatment = series[order[:, 0]], series[order[:, 1]] * (1 + effect)
    run = run_of("R", result_of("a", control), result_of("b", treatment))
    (found,) = compare_interleaved(run, "a", "b", margin=MARGIN).effects
    return found.verdict


def rates(
    family: Family, number: int, count: int, replicas: int, seed: int
) -> dict[tuple[str, float], Counter[Verdict]]:
    rng = np.random.default_rng([seed, number, count])
    found: dict[tuple[str, float], Counter[Verdict]] = {}
    for series in family.draw(rng, replicas, 2 * count, SAMPLES):
        for way, effects in ((separate, (0.0, 0.05, 0.1, 0.2)), (in_pairs, (0.0, 0.05))):
            for effect in effects:
                found.setdefault((way.__name__, effect), Counter())[way(series, effect)] += 1
    return found


def missed(family: Family, count: int, share: dict[tuple[str, float], Array], slack: float) -> list[str]:
    """The bars that are not kept; `slack`: what chance may add to a share."""
    name = f"{family.name}, {count} launches"
    found = []
    for way in ("separate", "in_pairs"):
        if share[way, 0.0][0] > MOST_FALSE + slack:
            found.append(f"{name}, {way}: {share[way, 0.0][0]:.1%} false verdicts")
        if share[way, 0.05][1] > MOST_FALSE_SAME + slack and "step" not in family.name:
            found.append(f"{name}, {way}: {share[way, 0.05][1]:.1%} falsely the same")
    if family.name in QUIET and share["separate", 0.1][0] < 0.95 - slack:
        found.append(f"{name}: only {share['separate', 0.1][0]:.0%} of 10 % found in separate runs")
    if family.name in STEADY_PAIRS and count == 20 and share["in_pairs", 0.05][0] < 0.99 - slack:
        found.append(f"{name}: only {share['in_pairs', 0.05][0]:.0%} of 5 % found in pairs")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="100 replicas")
    parser.add_argument("--only", metavar="WORD", help="only families whose name has this word")
    options = parser.parse_args()
    replicas = 100 if options.quick else options.replicas
    slack = 0.0 if replicas >= 2000 else 2 * (MOST_FALSE / replicas) ** 0.5
    start, bad = time.perf_counter(), []
    print(
        f"% of {replicas} replicas, margin {MARGIN:.0%}, seed {options.seed}; 'false': unchanged, and called different\n"
    )
    print(
        "| family | launches | separate: false | found of 5, 10, 20 % | 5 % called the same | pairs: false | found of 5 % | 5 % called the same |"
    )
    print("|" + "---|" * 8)
    for number, family in enumerate((*FAMILIES, *MORE)):
        if options.only and options.only not in family.name:
            continue
        for count in COUNTS:
            found = rates(family, number, count, replicas, options.seed)
            share = {
                key: (sum(verdicts[v] for v in CHANGED) / replicas, verdicts[Verdict.SAME] / replicas)
                for key, verdicts in found.items()
            }
            powers = ", ".join(f"{share['separate', e][0] * 100:.0f}" for e in (0.05, 0.1, 0.2))
            print(
                f"| {family.name} | {count} | {share['separate', 0.0][0] * 100:.1f} | {powers} "
                f"| {share['separate', 0.05][1] * 100:.1f} | {share['in_pairs', 0.0][0] * 100:.1f} "
                f"| {share['in_pairs', 0.05][0] * 100:.0f} | {share['in_pairs', 0.05][1] * 100:.1f} |",
                flush=True,
            )
            bad += missed(family, count, share, slack)
    print(f"\n{time.perf_counter() - start:.0f} s")
    for text in bad:
        print(f"bar missed: {text}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""Is the difference that `doctor` says would be seen really seen? Against the very test that `compare --between` uses.

    python performance/detectable.py --seed 1
    python performance/detectable.py --quick
    python performance/detectable.py --needed      what analysis/noise.py has as _NEEDED, found anew

Each trial is a checkup and a comparison: six pairs of equal launches, from which `noise_of` works out the difference that is told for
6, 12 and 20 pairs; then so many pairs of which one side is slower by just that, through `compare_interleaved`. Both have the same log-normal
noise, which the checkup knows only from its six pairs.

Bar: called regressed in 77 to 87 % of trials (told: 80 %).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _comparisons import result_of, run_of

from benchwright.analysis.comparison.compare import DEFAULT_MARGIN, compare_interleaved
from benchwright.core.comparison import Verdict
from benchwright.doctor.check import ENOUGH_PAIRS, SIZES, noise_of

SPREADS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)  # of one launch
LEAST, MOST = 0.77, 0.87


def is_called(rng: np.random.Generator, spread: float, pairs: int, slower: float, margin: float) -> bool:
    control, treatment = np.exp(spread * rng.standard_normal((2, pairs)))
    run = run_of("R", result_of("a", control[:, None]), result_of("b", treatment[:, None] * (1 + slower)))
    (effect,) = compare_interleaved(run, "a", "b", margin=margin).effects
    return effect.verdict is Verdict.REGRESSED


def checked(rng: np.random.Generator, spread: float) -> tuple[float, dict[int, float]]:
    """The deviation of pairs that a checkup finds, and what it tells."""
    pairs = np.exp(spread * rng.standard_normal((ENOUGH_PAIRS, 2)))
    noise = noise_of("process.duration", [(a, b) for a, b in pairs.tolist()])
    assert noise is not None
    return float(np.log(pairs[:, 1] / pairs[:, 0]).std(ddof=1)), noise.detectable


def needed(rng: np.random.Generator, pairs: int, trials: int) -> float:
    """In deviations that a checkup finds: what is called in 80 % of trials, without a margin."""
    low, high = 0.1, 8.0
    for _ in range(9):
        middle = (low + high) / 2
        hits = 0
        for _ in range(trials):
            deviation, _ = checked(rng, 0.02)
            hits += is_called(rng, 0.02, pairs, float(np.expm1(middle * deviation)), 0.0)
        low, high = (middle, high) if hits < 0.8 * trials else (low, middle)
    return high


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="200 trials")
    parser.add_argument("--needed", action="store_true")
    options = parser.parse_args()
    trials = 200 if options.quick else options.trials
    start = time.perf_counter()
    if options.needed:
        rng = np.random.default_rng(options.seed)
        print({pairs: round(needed(rng, pairs, trials), 2) for pairs in SIZES})
        return 0
    slack = 2 * (0.16 / trials) ** 0.5
    print(f"% called regressed (and the mean difference predicted); {trials} trials, margin {DEFAULT_MARGIN:.0%}\n")
    print(
        "| launches spread by | "
        + " | ".join(f"{pairs} pairs" for pairs in SIZES)
        + " |\n|"
        + "---|" * (1 + len(SIZES))
    )
    kept = True
    for number, spread in enumerate(SPREADS):
        cells = []
        for pairs in SIZES:
            rng = np.random.default_rng([options.seed, number, pairs])
            hits, told = 0, 0.0
            for _ in range(trials):
                _, detectable = checked(rng, spread)
                told += detectable[pairs] / trials
                hits += is_called(rng, spread, pairs, detectable[pairs], DEFAULT_MARGIN)
            kept = kept and LEAST - slack <= hits / trials <= MOST + slack
            cells.append(f"{hits / trials * 100:.1f} ({told * 100:.1f} %)")
        print(f"| {spread * 100:g} % | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")
    if not kept:
        print(f"bar missed: not between {LEAST:.0%} and {MOST:.0%}", file=sys.stderr)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

"""The percentiles' share of performance/coverage.py: how often the true percentile lies beyond the bound we print."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchwright.analysis.statistics.percentiles import slow_end
from benchwright.core.metric import Direction

Array = Any  # launches x samples
Draw = Callable[[np.random.Generator, int, int], Array]
SIZES = ((1, 1000), (6, 200), (6, 1000), (20, 100), (20, 1000))


def _independent(rng: np.random.Generator, launches: int, samples: int) -> Array:
    return rng.standard_normal((launches, samples))


def _resembling(rng: np.random.Generator, launches: int, samples: int) -> Array:
    noise = rng.standard_normal((launches, samples))
    for i in range(1, samples):
        noise[:, i] = 0.9 * noise[:, i - 1] + np.sqrt(1 - 0.81) * noise[:, i]
    return noise


def _launch_effect(rng: np.random.Generator, launches: int, samples: int) -> Array:
    return 0.3 * rng.standard_normal((launches, 1)) + rng.standard_normal((launches, samples))


def _launch_spread(rng: np.random.Generator, launches: int, samples: int) -> Array:
    return np.exp(0.3 * rng.standard_normal((launches, 1))) * rng.standard_normal((launches, samples))


def _bursts(rng: np.random.Generator, launches: int, samples: int) -> Array:
    """3 % of the steps are slow, ten in a row."""
    begins = rng.random((launches, samples)) < 0.003
    slow = np.zeros_like(begins)
    for later in range(10):
        slow[:, later:] |= begins[:, : samples - later]
    return 0.1 * rng.standard_normal(slow.shape) + slow * (3 + rng.standard_normal(slow.shape))


NOISES: dict[str, Draw] = {
    "independent": _independent,
    "AR(.9) within launches": _resembling,
    "slow in bursts": _bursts,
    "launches differ by 0.3 sd": _launch_effect,
    "launches differ in spread by 30 %": _launch_spread,
}


def print_percentile_table(replicas: int, seed: int) -> None:
    """Each cell: % of all cases in which the truth lies beyond the bound (% in which a bound is given)."""
    print(f"\n## Percentiles of samples: % beyond the bound (% that have one); {replicas} replicas; nominal 1 %\n")
    print("The truth is that of all launches there could be. One launch cannot know how another differs.\n")
    sizes = " | ".join(f"{launches} × {samples:,}" for launches, samples in SIZES)
    print(f"| noise | percentile | {sizes} |\n|" + "---|" * (2 + len(SIZES)))
    for number, (name, draw) in enumerate(NOISES.items()):
        # As long launches as those that are measured: bursts and wandering need room.
        many = draw(np.random.default_rng(7), 4_000, 500).ravel()
        cells: dict[float, list[str]] = {90.0: [], 99.0: []}
        for launches, samples in SIZES:
            rng = np.random.default_rng([seed, 60, number, launches, samples])
            found = [slow_end(draw(rng, launches, samples).tolist(), Direction.LOWER) for _ in range(replicas)]
            for percent, row in cells.items():
                bounds = [p.bound for tail in found for p in tail if p.percent == percent]
                truth = float(np.percentile(many, percent))
                beyond = sum(bound is not None and bound < truth for bound in bounds)
                given = sum(bound is not None for bound in bounds)
                row.append(f"{beyond / replicas * 100:.1f} ({given / replicas * 100:.0f})")
        for percent, row in cells.items():
            print(f"| {name} | p{percent:g} | " + " | ".join(row) + " |", flush=True)

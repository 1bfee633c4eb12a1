"""The rules of performance/verdicts.py: ours for many replicas at once, and those of other tools, from what they document.

asv        `asv compare`: Mann and Whitney's test over all samples at 0.2 %, and a factor of 1.1 between the medians
           (asv_runner.statistics.is_different; `--factor`).
threshold  7 % between two single launches (torchbench's nightly check).
FAI-PEP    of the runs of 8 commits, 5 launches each, the two newest: median above the 90th percentile of the older runs' p90 plus a
           tenth of their range, both times (repo_driver's rule).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchwright.analysis.statistics.distributions import mann_whitney_at_most, student_quantile
from benchwright.analysis.statistics.launch_noise import freedom, students
from benchwright.analysis.statistics.sequential import look_schedule
from benchwright.analysis.statistics.spending_function import levels_at

Array = Any


class Design:
    """An A/B of at most `most` pairs; `looks` None: as the product looks."""

    def __init__(self, most: int, looks: tuple[int, ...] | None = None, alpha: float = 0.01) -> None:
        self.looks = looks or look_schedule(most)
        shares = [look / most for look in self.looks]
        self.limits = [
            student_quantile(1 - levels_at(shares[: n + 1]).nominal_of(alpha), freedom(2 * look))
            for n, look in enumerate(self.looks)
        ]


def random_orders(rng: np.random.Generator, replicas: int, pairs: int) -> Array:
    """Whether the control comes first, as plan/placement.py draws it."""
    four = np.array([(1, 1, 0, 0), (1, 0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 0)], dtype=bool)
    drawn = four[rng.integers(0, 4, (replicas, -(-pairs // 4)))]
    return drawn.reshape(replicas, -1)[:, :pairs]


def judged(launches: Array, control_first: Array, effect: float, design: Design, margin: float) -> dict[str, Array]:
    """Of each replica: whether a difference was called (the interval excludes 1), "same", the truth covered, and pairs used.

    `launches`: replicas x twice as many launches as pairs, as logarithms, without the effect.
    """
    truth, limit = math.log1p(effect), math.log1p(margin)
    is_treatment = np.stack([~control_first, control_first], axis=2).reshape(launches.shape)
    measured = launches + truth * is_treatment
    count = len(launches)
    going = np.ones(count, dtype=bool)
    found = {
        "called": np.zeros(count, dtype=bool),
        "same": np.zeros(count, dtype=bool),
        "covered": np.ones(count, dtype=bool),
        "used": np.zeros(count),
    }
    for look, most in zip(design.looks, design.limits, strict=True):
        rows = np.flatnonzero(going)
        if not len(rows):
            break
        sides, values = is_treatment[rows, : 2 * look], measured[rows, : 2 * look]
        zero, low, high, true = (students(values - r * sides, sides) for r in (0.0, -limit, limit, truth))
        same = (low > most) & (high < -most)
        differs = np.abs(zero) >= most
        ends = same | differs | (look == design.looks[-1])
        found["used"][rows] = look
        found["called"][rows] = differs
        found["same"][rows] = same
        found["covered"][rows] = np.abs(true) < most
        going[rows[ends]] = False
    return found


def mann_whitney_called(control: Array, treatment: Array, level: float) -> bool:
    """Two-sided, from one value for each launch."""
    above = int((treatment[:, None] > control[None, :]).sum())
    fewest = min(above, control.size * treatment.size - above)
    return 2 * mann_whitney_at_most(fewest, control.size, treatment.size) <= level


def asv_called(control: Array, treatment: Array) -> bool:
    factor = float(np.median(treatment) / np.median(control))
    return max(factor, 1 / factor) > 1.1 and mann_whitney_called(control.ravel(), treatment.ravel(), 0.002)


def threshold_called(control: Array, treatment: Array) -> bool:
    return abs(float(np.median(treatment[0]) / np.median(control[0])) - 1) > 0.07


def faipep_called(launches: Array, effect: float) -> bool:
    """`launches`: 40 or more x samples, in the order they ran; the last two of eight runs have the effect."""
    runs = launches[:40].reshape(8, -1).copy()
    runs[6:] *= 1 + effect
    nineties = np.percentile(runs, 90, axis=1)

    def regressed(newest: int) -> bool:
        older = nineties[:newest]
        allowed = np.percentile(older, 90) + (runs[:newest].max() - runs[:newest].min()) / 10
        return bool(np.median(runs[newest]) > allowed)

    return regressed(7) and regressed(6)

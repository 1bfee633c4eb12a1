"""Verdicts of asv and pyperf by their own code. Started with an interpreter that has them: pairs of samples on stdin.

asv 0.6     `asv compare` marks a benchmark if `_is_result_better` says so in either direction, at its factor of 1.1.
pyperf 2.9  `pyperf compare_to` calls a difference significant if `is_significant_benchs` does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

Launches = Sequence[Sequence[float]]  # the samples of each


def asv(control: Launches, treatment: Launches) -> bool:
    from asv.commands.compare import _is_result_better  # type: ignore[import-not-found]
    from asv_runner.statistics import compute_stats  # type: ignore[import-not-found]

    (a, of_a), (b, of_b) = (_with_stats(side, compute_stats) for side in (control, treatment))
    return any(_is_result_better(*way, 1.1) for way in ((a, b, of_a, of_b), (b, a, of_b, of_a)))


def _with_stats(side: Launches, compute_stats):  # type: ignore[no-untyped-def]
    samples = [value for launch in side for value in launch]
    middle, stats = compute_stats(samples, 1)
    return middle, (stats, samples)


def pyperf(control: Launches, treatment: Launches) -> bool:
    import pyperf as tool  # type: ignore[import-not-found]
    from pyperf._compare import is_significant_benchs  # type: ignore[import-not-found]

    # Three values of each process, as `pyperf` takes by default.
    sides = [
        tool.Benchmark([tool.Run(list(launch)[:3], metadata={"name": "b"}, collect_metadata=False) for launch in side])
        for side in (control, treatment)
    ]
    return bool(is_significant_benchs(*sides)[0])


if __name__ == "__main__":
    json.dump([[asv(a, b), pyperf(a, b)] for a, b in json.load(sys.stdin)], sys.stdout)

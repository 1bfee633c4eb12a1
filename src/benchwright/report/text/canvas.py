"""Drawings in text: dots of Braille on a grid of characters, bars of blocks, and an axis on the left and below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchwright.report.text.axis import Ticks, reach, ticks
from benchwright.report.text.numbers import format_value

_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille character: four rows of two dots
_MOST_DIGITS = 6
_SMALL = 1e-3  # smaller numbers are written with an exponent
_EIGHTHS = " ▏▎▍▌▋▊▉█"
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


def histogram(values: Sequence[float], *, width: int, rows: int, unit: str | None) -> list[str]:
    """How many values lie where: a bar for each of `rows` equal ranges, with its middle and its count."""
    finite = sorted(v for v in values if math.isfinite(v))
    if not finite:
        return []
    low, high = finite[0], finite[-1]
    wide = high / rows - low / rows
    if not wide:
        return [f" all {len(finite):,} are {format_value(low, unit)}"]
    counts = [0] * rows
    for value in finite:
        counts[min(int((value / rows - low / rows) / wide * rows), rows - 1)] += 1
    names = [axis_words(low + (i + 0.5) * wide, unit, high, wide / 4) for i in range(rows)]
    room, most = max(map(len, names)), max(counts)
    columns = max(width - room - len(f"{most:,}") - 4, 8)
    return [
        f" {name:>{room}} │{bar(count / most, columns)} {count:,}".rstrip() if count else f" {name:>{room}} │"
        for name, count in zip(names, counts, strict=True)
    ]


def bar(share: float, columns: int) -> str:
    """A bar over `share` of `columns`, to an eighth of a character; at least a sliver."""
    eighths = max(1, round(share * columns * 8))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


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
    return f"{value / scale:,.{digits}f}{short}"

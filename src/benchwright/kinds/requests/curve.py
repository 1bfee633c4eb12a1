"""A small chart as SVG: lines over a common axis, a limit and a mark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.report.document import Cell, Column, Field, ReportTable, table_of
from benchwright.report.text.numbers import format_value

_WIDTH, _HEIGHT, _LEFT, _BELOW = 640, 220, 64, 28
_COLOURS = ("#2b6cb0", "#c05621")


class CurveLine(NamedTuple):
    """`points`: x and y, in the order they are joined."""

    name: str
    points: Sequence[tuple[float, float]]


class Curve(NamedTuple):
    """`limit`: a line across, such as an objective. `mark`: a place on the x axis."""

    lines: Sequence[CurveLine]
    across: str  # the unit of x
    unit: str  # of y
    limit: float | None = None
    mark: float | None = None
    logarithmic: bool = True


def drawn(title: str, curve: Curve) -> ReportTable | None:
    """A drawing for HTML, below where each line begins and ends. None if there is nothing to draw."""
    drawing = svg(curve)
    if not drawing:
        return None
    ends = "; ".join(f"{line.name}: {_ends(line, curve.unit)}" for line in curve.lines if line.points)
    field: Field[str] = Field(Column(ends), lambda _: Cell(drawing=drawing))
    return table_of([field], [title], title=title, opened=True)


def _ends(line: CurveLine, unit: str) -> str:
    first, last = (format_value(y, unit or None) for _, y in (line.points[0], line.points[-1]))
    return f"{first} → {last}"


def svg(curve: Curve) -> str:
    """Empty if there is nothing to draw. All its text is numbers and fixed words."""
    points = [point for line in curve.lines for point in line.points]
    if len({x for x, _ in points}) < 2:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points] + ([curve.limit] if curve.limit else [])
    log = curve.logarithmic and min(ys) > 0
    left, right = min(xs), max(xs)
    bottom, top = (_scaled(min(ys), log), _scaled(max(ys), log)) if log else (0.0, max(ys) or 1.0)
    top = top if top > bottom else bottom + 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (x - left) / (right - left) * (_WIDTH - _LEFT - 10)
        return across, 10 + (1 - (_scaled(y, log) - bottom) / (top - bottom)) * (_HEIGHT - _BELOW - 10)

    parts = [f'<svg role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" font-size="11">']
    parts += [_text(2, place(left, y)[1] + 4, format_value(y, curve.unit or None)) for y in (min(ys), max(ys))]
    parts += [
        _text(place(x, max(ys))[0] - 20, _HEIGHT - 8, f"{x:.3g} {curve.across}") for x in (left, (left + right) / 2)
    ]
    for colour, line in zip(_COLOURS, curve.lines, strict=False):
        placed = [place(x, y) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        if placed:
            parts.append(_text(min(placed[-1][0] + 4, _WIDTH - 60), max(placed[-1][1] - 6, 10), line.name, colour))
    if curve.limit:
        y = place(left, curve.limit)[1]
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-dasharray="5 4"/>'
        )
        parts.append(_text(_LEFT + 4, y - 4, f"objective {format_value(curve.limit, curve.unit or None)}"))
    if curve.mark is not None and left <= curve.mark <= right:
        x = place(curve.mark, max(ys))[0]
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="{_HEIGHT - _BELOW}" stroke="#888"/>')
        parts.append(_text(x + 3, _HEIGHT - _BELOW - 4, "knee"))
    return "".join((*parts, "</svg>"))


def _scaled(y: float, log: bool) -> float:
    return math.log(y) if log else y


def _text(x: float, y: float, text: str, colour: str = "#666") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{text}</text>'

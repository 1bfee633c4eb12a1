"""Pictures as HTML and SVG. Places are percentages and sizes pixels, so dots stay round at any width, without a script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from benchwright.core.efficiency import CPU, MEMORY, Roofline, RoofPoint
from benchwright.core.quantities import format_prefixed
from benchwright.report.document import Figure, FigureRow
from benchwright.report.tables.html import escaped
from benchwright.report.text.numbers import share_words

_HEIGHT = 26
_MOST_DOTS = 200  # of a row; more would only be a bar
_EDGE = 2.5  # per cent on either side, so that nothing at an end is cut off


def html_picture(figure: Figure, at: str = "") -> Markup:
    """`at` ends every place of a page that holds several runs."""
    rows = "".join(_row(figure, row, at) for row in figure.rows)
    axis = f"<small>{escaped(figure.axis)}</small>" if figure.axis else ""
    beyond = ("Hollow marks, and lines that reach the edge, go beyond the axis.",) if figure.cuts else ()
    notes = "".join(f'<p class="note">{escaped(text)}</p>' for text in (*beyond, *figure.notes))
    # Every text of it went through `escaped`, and drawings are made of numbers.
    return Markup(  # noqa: S704
        f'<figure class="picture card"><figcaption>{escaped(figure.title)}{axis}</figcaption>'
        f'<div class="rows">{rows}<div class="row axis"><span></span>{_axis(figure)}<span></span></div></div>{notes}</figure>'
    )


def _row(figure: Figure, row: FigureRow, at: str) -> str:
    name = escaped(row.name)
    name = (
        f'<a class="name" href="#{escaped(row.link)}{at}">{name}</a>'
        if row.link
        else f'<span class="name">{name}</span>'
    )
    small = f"<small>{escaped(row.small)}</small>" if row.small else ""
    mark = f" {escaped(row.mark)}" if row.mark else ""
    if row.value is None:
        return f'<div class="row none{mark}">{name}<span class="figures">{escaped(row.text)}{small}</span></div>'
    label = escaped(f"{row.name}: {row.text}" + (f", {row.small}" if row.small else ""))
    return (
        f'<div class="row{mark}">{name}{_svg(_drawn(figure, row), label)}'
        f'<span class="figures">{escaped(row.text)}{small}</span></div>'
    )


def _svg(content: str, label: str = "") -> str:
    spoken = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
    return f'<svg {spoken} width="100%" height="{_HEIGHT}">{content}</svg>'


def _drawn(figure: Figure, row: FigureRow) -> str:
    middle = _HEIGHT // 2
    parts = [*_behind(figure)]
    assert row.value is not None
    here = _place(figure, row.value)
    if figure.bars:
        start = _EDGE + 0.0
        parts.append(
            f'<rect class="bar" x="{start}%" width="{max(here - start, 0):.2f}%" y="5" height="{_HEIGHT - 10}"/>'
        )
    if row.low is not None and row.high is not None:
        ends = f'x1="{_place(figure, row.low):.2f}%" x2="{_place(figure, row.high):.2f}%"'
        parts.append(f'<line class="whisker" {ends} y1="{middle}" y2="{middle}"/>')
    dots = row.dots if len(row.dots) <= _MOST_DOTS else row.dots[:: -(-len(row.dots) // _MOST_DOTS)]
    parts += [
        f'<circle class="launch{_off(figure, v)}" cx="{_place(figure, v):.2f}%" cy="{middle}" r="3"/>' for v in dots
    ]
    if row.dots:
        parts.append(f'<line class="median" x1="{here:.2f}%" x2="{here:.2f}%" y1="4" y2="{_HEIGHT - 4}"/>')
    elif not figure.bars:
        parts.append(f'<circle class="dot{_off(figure, row.value)}" cx="{here:.2f}%" cy="{middle}" r="5"/>')
    return "".join(parts)


def _off(figure: Figure, value: float) -> str:
    return " off" if figure.is_beyond(value) else ""


def _behind(figure: Figure) -> list[str]:
    """The margin, the marks of the axis, and what everything is compared with."""
    parts = []
    if figure.margin is not None:
        low, high = (_place(figure, v) for v in figure.margin)
        parts.append(f'<rect class="margin" x="{low:.2f}%" width="{high - low:.2f}%" y="0" height="{_HEIGHT}"/>')
    parts += [_upright("mark", _place(figure, value)) for value, _ in figure.ticks]
    return parts + ([_upright("one", _place(figure, figure.line))] if figure.line is not None else [])


def _upright(class_: str, x: float) -> str:
    return f'<line class="{class_}" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{_HEIGHT}"/>'


def _axis(figure: Figure) -> str:
    parts = []
    for value, text in figure.ticks:
        x = _place(figure, value)
        anchor = "start" if x < 8 else "end" if x > 92 else "middle"
        parts.append(f'<text x="{x:.2f}%" y="14" text-anchor="{anchor}">{escaped(text)}</text>')
    return _svg("".join(parts))


def _place(figure: Figure, value: float) -> float:
    return _EDGE + (100 - 2 * _EDGE) * figure.at(value)


# A roofline as HTML and SVG: both axes logarithmic, roofs as lines, benchmarks as numbered points, a table below.


_PLOT_WIDTH, _PLOT_HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 16, 14, 40
_AIR = 3.0  # beyond the farthest point or ridge, as a factor


def html_roofline(roofline: Roofline, links: Mapping[str, str], at: str = "") -> Markup:
    """`links`: the place of each benchmark on the page."""
    where = "this machine's processors" if roofline.place == CPU else "this machine's device"
    plot = _Plot(roofline)
    rows = "".join(_point_row(number, point, links, at) for number, point in enumerate(roofline.points, 1))
    peaks = [
        f"{kind or 'arithmetic'}: {format_prefixed(peak.value, 'FLOP/s')} by {peak.benchmark}"
        for kind, peak in roofline.arithmetic.items()
    ]
    peaks.append(f"memory: {format_prefixed(roofline.memory.value, 'B/s')} by {roofline.memory.benchmark}")
    note = f"Measured on this machine, not from a data sheet: {'; '.join(peaks)}. Bytes are the least that a call or step must move."
    # Every text of it went through `escaped`, and the drawing is made of numbers.
    return Markup(  # noqa: S704
        f'<figure class="picture card roofline"><figcaption>Roofline of {where}'
        f"<small>FLOP/s against FLOP a byte; a point on a roof can become no faster there</small></figcaption>"
        f'<svg role="img" aria-label="Roofline of {where}" viewBox="0 0 {_PLOT_WIDTH} {_PLOT_HEIGHT}" width="100%">{plot.drawn()}</svg>'
        f'<div class="scroll"><table><thead><tr><th></th><th>Benchmark</th><th class="n">FLOP/B</th><th class="n">Reached</th>'
        f'<th>Limit</th><th class="n">Of it</th></tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="note">{escaped(note)}</p></figure>'
    )


def _point_row(number: int, point: RoofPoint, links: Mapping[str, str], at: str) -> str:
    name = escaped(point.benchmark)
    if point.benchmark in links:
        name = f'<a href="#{escaped(links[point.benchmark])}{at}">{name}</a>'
    limit = "memory" if point.limit == MEMORY else f"{point.limit or 'arithmetic'}"
    reached = format_prefixed(point.achieved, "FLOP/s")
    return (
        f'<tr><td>{number}</td><td>{name}</td><td class="n">{point.intensity:.3g}</td><td class="n">{escaped(reached)}</td>'
        f'<td>{escaped(limit)}: {escaped(format_prefixed(point.roof, "FLOP/s"))}</td><td class="n">{escaped(share_words(point.share))}</td></tr>'
    )


class _Plot:
    """Places on both axes, and what is drawn there."""

    def __init__(self, roofline: Roofline) -> None:
        self._roofline = roofline
        ridges = [peak.value / roofline.memory.value for peak in roofline.arithmetic.values()]
        xs = [*ridges, *(p.intensity for p in roofline.points)]
        self._x = (math.log10(min(xs) / _AIR), math.log10(max(xs) * _AIR))
        highest = max([*(peak.value for peak in roofline.arithmetic.values()), *(p.achieved for p in roofline.points)])
        lowest = min([*(p.achieved for p in roofline.points), *(p.roof for p in roofline.points)])
        self._y = (math.log10(lowest / _AIR), math.log10(highest * _AIR))

    def drawn(self) -> str:
        parts = [*self._grid(), *self._roofs()]
        for number, point in enumerate(self._roofline.points, 1):
            x, y = self._at(point.intensity, point.achieved)
            words = escaped(
                f"{point.benchmark}: {format_prefixed(point.achieved, 'FLOP/s')}, {share_words(point.share)}"
            )
            parts.append(f'<g><title>{words}</title><circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
            parts.append(f'<text x="{x + 7:.1f}" y="{y - 5:.1f}">{number}</text></g>')
        return "".join(parts)

    def _grid(self) -> list[str]:
        parts = []
        for power in _powers(*self._x):
            x, _ = self._at(10.0**power, 10 ** self._y[0])
            parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_PLOT_HEIGHT - _BOTTOM}"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{_PLOT_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{10.0**power:g}</text>'
            )
        for power in _powers(*self._y):
            _, y = self._at(10 ** self._x[0], 10.0**power)
            words = escaped(format_prefixed(10.0**power, "FLOP/s"))
            parts.append(f'<line class="mark" x1="{_LEFT}" x2="{_PLOT_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
        middle = (_LEFT + _PLOT_WIDTH - _RIGHT) / 2
        return [*parts, f'<text x="{middle}" y="{_PLOT_HEIGHT - 6}" text-anchor="middle">FLOP a byte</text>']

    def _roofs(self) -> list[str]:
        memory = self._roofline.memory.value
        highest = max(peak.value for peak in self._roofline.arithmetic.values())
        begin = max(10 ** self._x[0], 10 ** self._y[0] / memory)
        parts = [self._line(begin, memory * begin, highest / memory, highest)]
        for kind, peak in self._roofline.arithmetic.items():
            end = 10 ** self._x[1]
            parts.append(self._line(peak.value / memory, peak.value, end, peak.value))
            x, y = self._at(end, peak.value)
            parts.append(
                f'<text x="{x - 4:.1f}" y="{y - 5:.1f}" text-anchor="end">{escaped(kind or "arithmetic")}</text>'
            )
        return parts

    def _line(self, x1: float, y1: float, x2: float, y2: float) -> str:
        (a, b), (c, d) = self._at(x1, y1), self._at(x2, y2)
        return f'<line class="median" x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"/>'

    def _at(self, x: float, y: float) -> tuple[float, float]:
        (low, high), (bottom, top) = self._x, self._y
        across = (math.log10(x) - low) / (high - low)
        up = (math.log10(y) - bottom) / (top - bottom)
        return _LEFT + across * (_PLOT_WIDTH - _LEFT - _RIGHT), _PLOT_HEIGHT - _BOTTOM - up * (
            _PLOT_HEIGHT - _TOP - _BOTTOM
        )


def _powers(low: float, high: float) -> Sequence[int]:
    powers = range(math.ceil(low), math.floor(high) + 1)
    return powers[:: max(1, -(-len(powers) // 8))]

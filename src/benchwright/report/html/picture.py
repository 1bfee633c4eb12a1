"""Pictures as HTML and SVG. Places are percentages and sizes pixels, so dots stay round at any width, without a script."""

from __future__ import annotations

from markupsafe import Markup

from benchwright.report.document import Figure, FigureRow
from benchwright.report.html.tables import escaped

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

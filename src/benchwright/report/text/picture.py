"""A picture as text: rows on a common axis, for a terminal or a file."""

from __future__ import annotations

from benchwright.report.document import Figure, FigureRow
from benchwright.report.text.layout import wrapped
from benchwright.report.text.one_line import clip, one_line

_MOST_NAME = 0.4  # of the width
_LEAST_PLOT = 16


def figure_lines(figure: Figure, width: int) -> list[str]:
    """`·` launches, `━` the interval, `┃` the median; `┊` is what everything is compared with. A figure is never cut."""
    texts = [" ".join(filter(None, (row.text, row.small))) for row in figure.rows]
    drawn = [len(text) for text, row in zip(texts, figure.rows, strict=True) if row.value is not None]
    names = min(max(len(row.name) for row in figure.rows), int(width * _MOST_NAME))
    room = max(width - names - max(drawn, default=0) - 4, _LEAST_PLOT)
    axis = f" ({figure.axis})" if figure.axis else ""
    lines = wrapped(f"{figure.title}{axis}", width, " ")
    for row, text in zip(figure.rows, texts, strict=True):
        name = f" {clip(row.name, names):<{names}} "
        if row.value is None:
            lines += wrapped(f"{name.strip()}  {text}", width, " ")
            continue
        line = f"{name} {drawn_row(figure, row, room)} {one_line(text)}"
        lines += [line] if len(line) <= width else [line[: len(name) + room + 1], f" {'':<{names}}  {one_line(text)}"]
    lines.append(f" {'':<{names}}  {axis_line(figure, room)}".rstrip())
    beyond = ("‹ and › lie beyond the axis.",) if figure.cuts else ()
    return lines + [line for note in (*beyond, *figure.notes) for line in wrapped(note, width, " ")]


def axis_line(figure: Figure, room: int) -> str:
    """The numbers below the axis, as many as have room."""
    marks = [" "] * room
    for value, words in figure.ticks:
        start = min(max(round(figure.at(value) * (room - 1)) - len(words) // 2, 0), room - len(words))
        if start >= 0 and not "".join(marks[max(start - 1, 0) : start + len(words) + 1]).strip():
            marks[start : start + len(words)] = words
    return "".join(marks)


def drawn_row(figure: Figure, row: FigureRow, room: int) -> str:
    """A row of the picture, `room` wide."""

    def at(value: float) -> int:
        return round(figure.at(value) * (room - 1))

    assert row.value is not None
    cells = [" "] * room
    if figure.line is not None:
        cells[at(figure.line)] = "┊"
    if figure.bars:
        cells[: at(row.value) + 1] = "▄" * (at(row.value) + 1)
    if row.low is not None and row.high is not None:
        cells[at(row.low) : at(row.high) + 1] = "━" * (at(row.high) - at(row.low) + 1)
    for dot in row.dots:
        cells[at(dot)] = "·" if cells[at(dot)] == " " else cells[at(dot)]
    cells[at(row.value)] = "┃" if row.dots else "●"
    for value in (v for v in (row.value, row.low, row.high, *row.dots) if v is not None and figure.is_beyond(v)):
        cells[0 if value < figure.low else -1] = "‹" if value < figure.low else "›"
    return "".join(cells)

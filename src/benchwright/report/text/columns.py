"""Tables of text that fit a terminal: what is least missed goes first, and a number is never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec

from benchwright.report.text.one_line import clip, one_line

LUXURY = 9  # from here on a column is only for those who have the room
_GAP = 2
_READABLE_NAME = 14
_SHORTEST_NAME = 8


class Column(msgspec.Struct, frozen=True):
    """`right`: numbers end together. `spare`: the column with the highest one is left out first; 0 always stays."""

    head: str
    right: bool = False
    spare: int = 0


class Row(msgspec.Struct, frozen=True):
    """`rest`, if there is one, takes the place of all columns after the given cells."""

    cells: tuple[str, ...]
    rest: str | None = None


def table(columns: Sequence[Column], rows: Sequence[Row], width: int, *, whole: bool = False) -> list[str]:
    """Lines of at most `width`, the heads first; the first column holds names, which may be cut.

    `whole`: a long `rest` goes on in further lines instead of being cut.
    """
    widths, gap = _fitted(columns, _wanted(columns, rows), width)
    return [
        _line(Row(tuple(c.head for c in columns)), columns, widths, gap, width),
        *(line for row in rows for line in _lines(row, columns, widths, gap, width, whole=whole)),
    ]


def left_out(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[str]:
    """The heads of columns that `table` has no room for, luxuries apart."""
    wanted = _wanted(columns, rows)
    kept, _ = _fitted(columns, wanted, width)
    return [columns[i].head for i in wanted if i not in kept and columns[i].spare < LUXURY]


def _wanted(columns: Sequence[Column], rows: Sequence[Row]) -> dict[int, int]:
    """How wide each column is that has something to say."""
    empty = {i for i in range(1, len(columns)) if all(len(r.cells) <= i or not r.cells[i] for r in rows)}
    kept = [i for i in range(len(columns)) if i not in empty or not columns[i].spare]
    return {i: max(len(columns[i].head), *(len(r.cells[i]) for r in rows if len(r.cells) > i), 0) for i in kept}


def _fitted(columns: Sequence[Column], widths: dict[int, int], width: int) -> tuple[dict[int, int], int]:
    """Luxuries go first, then the wider gaps, then the ends of long names, then other columns, the least missed first."""
    left = dict(widths)
    going = sorted((i for i in left if columns[i].spare), key=lambda i: columns[i].spare)
    while going and columns[going[-1]].spare >= LUXURY and _total(left, _GAP) > width:
        del left[going.pop()]
    if _total(left, _GAP) <= width:
        return left, _GAP
    while (room := width - (_total(left, 1) - left[0])) < min(left[0], _READABLE_NAME) and going:
        del left[going.pop()]
    left[0] = min(left[0], max(room, _SHORTEST_NAME))
    return left, 1


def _total(widths: dict[int, int], gap: int) -> int:
    return 1 + sum(widths.values()) + gap * (len(widths) - 1)


def _lines(
    row: Row, columns: Sequence[Column], widths: dict[int, int], gap: int, width: int, *, whole: bool
) -> list[str]:
    if not whole or row.rest is None:
        return [_line(row, columns, widths, gap, width)]
    head = _line(Row(row.cells, "·"), columns, widths, gap, 10 * width).removesuffix("·")
    indent = min(len(head), width // 2)
    room = max(width - indent, _READABLE_NAME)
    texts = textwrap.wrap(one_line(row.rest), room, break_on_hyphens=False) or [""]
    lines = [f"{head}{texts[0]}", *(" " * indent + text for text in texts[1:])]
    if len(lines[0]) > width:
        lines = [head.rstrip(), *(" " * indent + text for text in texts)]
    return [clip(line, width).rstrip() for line in lines]


def _line(row: Row, columns: Sequence[Column], widths: dict[int, int], gap: int, width: int) -> str:
    parts = []
    for i, wide in widths.items():
        if i < len(row.cells):
            cell = clip(row.cells[i], wide) if i == 0 else row.cells[i]
            parts.append(cell.rjust(wide) if columns[i].right else cell.ljust(wide))
    if row.rest is None:
        return one_line(" " + (" " * gap).join(parts)).rstrip()
    return clip(" " + (" " * gap).join([*parts, row.rest]), width).rstrip()

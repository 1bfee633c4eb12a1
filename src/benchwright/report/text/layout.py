"""Tables and sections as lines that fit a terminal: the column least missed goes first, and a number is never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.report.document import OPTIONAL, Column, LogTail, ReportSection, ReportTable, Row
from benchwright.report.text.one_line import clip, one_line, packed

_GAP = 2
_READABLE_NAME = 14
_SHORTEST_NAME = 8
_MOST_LOG_LINES = 8


def table_lines(
    table: ReportTable, width: int, *, whole: bool = False, every: bool = False, several: bool = False
) -> list[str]:
    """Lines of at most `width`, the heads first; the first column holds names, which may be cut.

    `whole`: a long `rest` goes on in further lines instead of being cut. `every`: all rows of a table that could do with fewer.
    `several`: columns that have no room go into further tables below.
    """
    shown = table.shown()
    if not shown.columns:
        return []
    if several and len(shown.columns) > 2 and _total(_wanted(shown.columns, shown.rows), _GAP) > width:
        halves = _split(shown)
        return [line for half in halves for line in table_lines(half, width, several=True)]
    rows = list(shown.rows)
    if not every and table.rest is not None and shown.rest is not None:
        rows = [*rows[: table.most], shown.rest]
    widths, gap = _fitted(shown.columns, _wanted(shown.columns, rows), width)
    heads = _line([c.title for c in shown.columns], None, shown.columns, widths, gap, width)
    lines = [line for row in rows for line in _lines(row, shown.columns, widths, gap, width, whole=whole)]
    below = [line for text in shown.in_common for line in wrapped(text, width, " ")]
    return [*([heads] if table.headed else []), *lines, *below]


def _split(table: ReportTable) -> tuple[ReportTable, ReportTable]:
    """Each with the first column and half of the others."""
    middle = 1 + len(table.columns) // 2

    def part(start: int, stop: int | None) -> ReportTable:
        rows = tuple(replace(row, cells=(row.cells[0], *row.cells[start:stop])) for row in table.rows)
        return replace(table, columns=(table.columns[0], *table.columns[start:stop]), rows=rows)

    return part(1, middle), part(middle, None)


def left_out_words(tables: Sequence[ReportTable], width: int, elsewhere: str) -> list[str]:
    """Which columns `tables` had to do without here, and where they are; nothing if all had room."""
    titles = dict.fromkeys(title for table in tables for title in left_out(table, width))
    text = f"no room here for: {', '.join(titles)}; a wider terminal shows all, and so does {elsewhere}"
    return wrapped(text, width, " ") if titles else []


def left_out(table: ReportTable, width: int) -> list[str]:
    """The titles of columns that `table_lines` has no room for, luxuries apart."""
    shown = table.shown()
    wanted = _wanted(shown.columns, shown.rows)
    kept, _ = _fitted(shown.columns, wanted, width) if wanted else ({}, 0)
    return [shown.columns[i].title for i in wanted if i not in kept and shown.columns[i].drop_priority < OPTIONAL]


def is_whole(table: ReportTable, width: int) -> bool:
    """Whether `table_lines` has room for all names as they are."""
    shown = table.shown()
    needed = {i: w for i, w in _wanted(shown.columns, shown.rows).items() if shown.columns[i].drop_priority < OPTIONAL}
    return _total(needed, 1) <= width


def section_lines(section: ReportSection, width: int) -> list[str]:
    """The heading, its table, what is to be said of it, logs, and further tables below their titles."""
    lines = packed(section.heading, width, " ", "   ")
    first = section.written[:1]
    for table in first:
        lines += [f"  {line}" for line in table_lines(table, width - 2, whole=True)]
        if not table.columns:  # nothing tells its rows apart
            lines += [x for row in table.rows for x in wrapped(row.rest or "", width, "   ")]
    for callout in section.callouts:
        lines += wrapped(f"⚠ {callout.note}", width - 3, "   ")
    for log in section.logs:
        lines += log_lines(log, width)
    for table in section.written[1:]:
        lines += titled_lines(table, width)
    return lines


def titled_lines(table: ReportTable, width: int, *, every: bool = False) -> list[str]:
    lines = table_lines(table, width - 4, every=every)
    return [clip(f"   {table.title}", width), *(f"    {line}" for line in lines)]


def log_lines(log: LogTail, width: int) -> list[str]:
    title = f"   {log.job}, the log's last lines:"
    return [clip(title, width), *(clip(f"     | {line}", width) for line in log.lines[-_MOST_LOG_LINES:])]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """One paragraph; further lines are set in by two more."""
    return textwrap.wrap(
        one_line(text), width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
    )


def _wanted(columns: Sequence[Column], rows: Sequence[Row]) -> dict[int, int]:
    """How wide each column would be."""
    return {
        i: max(len(column.title), *(len(r.cells[i].text) for r in rows if len(r.cells) > i), 0)
        for i, column in enumerate(columns)
    }


def _fitted(columns: Sequence[Column], widths: dict[int, int], width: int) -> tuple[dict[int, int], int]:
    """Luxuries go first, then the wider gaps, then the ends of long names, then other columns, the least missed first."""
    left = dict(widths)
    going = sorted((i for i in left if columns[i].drop_priority), key=lambda i: columns[i].drop_priority)
    while going and columns[going[-1]].drop_priority >= OPTIONAL and _total(left, _GAP) > width:
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
    cells = [cell.text.upper() if cell.mark == "failed" else cell.text for cell in row.cells]
    if not whole or row.rest is None:
        return [_line(cells, row.rest, columns, widths, gap, width)]
    head = _line(cells, "·", columns, widths, gap, 10 * width).removesuffix("·")
    indent = min(len(head), width // 2)
    room = max(width - indent, _READABLE_NAME)
    texts = textwrap.wrap(one_line(row.rest), room, break_on_hyphens=False) or [""]
    lines = [f"{head}{texts[0]}", *(" " * indent + text for text in texts[1:])]
    if len(lines[0]) > width:
        lines = [head.rstrip(), *(" " * indent + text for text in texts)]
    return [clip(line, width).rstrip() for line in lines]


def _line(
    cells: Sequence[str], rest: str | None, columns: Sequence[Column], widths: dict[int, int], gap: int, width: int
) -> str:
    parts = []
    for i, wide in widths.items():
        if i < len(cells):
            cell = clip(cells[i], wide) if i == 0 else cells[i]
            parts.append(cell.rjust(wide) if columns[i].right else cell.ljust(wide))
    if rest is None:
        return one_line(" " + (" " * gap).join(parts)).rstrip()
    return clip(" " + (" " * gap).join([*parts, rest]), width).rstrip()

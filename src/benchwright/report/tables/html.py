"""Tables as HTML. Not a template: a large report has tens of thousands of cells, and a macro for each takes four times as long."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape

from markupsafe import Markup

from benchwright.report.document import Cell, Column, ReportTable, Row
from benchwright.report.text.one_line import titled

_PLAIN = Cell()
_BADGES = ("status", "verdict", "state")
# What a parser would drop or refuse, what UTF-8 cannot hold, and what turns the direction of the text around it.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
# The results are laid out by these classes, as a table or, on a narrow screen, as cards.
_RESULTS = {
    "status": "status",
    "metric": "metric",
    "value": "value",
    "± 95 %": "doubt",
    "best": "best",
    "launches": "launches",
    "by launch": "course",
    "memory": "memory",
}
_LABELLED = ("best", "launches", "memory")  # of the results, where there are no heads
_CARDS = "plain"  # tables of this class become cards on a narrow screen, too: every cell says what it is


def clean(text: str) -> str:
    """`text` without the characters that have no place in a page; each is shown as �."""
    return _UNSAFE.sub("�", text)


@lru_cache(maxsize=4096)
def escaped(text: str) -> str:
    """Most texts of a table come many times."""
    return escape(clean(text))


def html_table(table: ReportTable, class_: str = "plain", at: str = "") -> Markup:
    """`at` ends every place of a page that holds several runs. A table of class `results` can be sorted."""
    shown = table.shown()
    names: Mapping[str, str] = _RESULTS if class_ == "results" else {}
    place = f' id="results{at}"' if class_ == "results" else ""
    heads = "".join(_head(column, names, can_sort=bool(names)) for column in shown.columns)
    labelled = (
        _LABELLED if names else [c.title for c in shown.columns if c.title != "benchmark"] if class_ == _CARDS else ()
    )
    starts = [
        None if column.sort else _start(_PLAIN, column, names, labelled, first=i == 0)
        for i, column in enumerate(shown.columns)
    ]
    rows = "".join([_row(row, shown.columns, starts, names, at, labelled) for row in shown.rows])
    kind = f' class="{class_}"' if class_ else ""
    below = "".join(f"<p>{escaped(text)}</p>" for text in (*shown.in_common, *shown.notes))
    caption = f"<caption>{below}</caption>" if below else ""
    # Every text of it went through `escaped`, and drawings are made of numbers.
    return Markup(f"<table{place}{kind}>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")  # noqa: S704


def _head(column: Column, names: Mapping[str, str], *, can_sort: bool) -> str:
    kind = _classes(names.get(column.title, "") if column.title in _LABELLED else "", "n" if column.right else "")
    title = escaped(column.title if column.literal else titled(column.title))
    if can_sort and column.sort:
        title = f'<button type="button" data-kind="{column.sort}">{title}</button>'
    return f'<th scope="col"{kind}{_hint(column.hint)}>{title}</th>'


def _row(
    row: Row,
    columns: tuple[Column, ...],
    starts: Sequence[str | None],
    names: Mapping[str, str],
    at: str,
    labelled: Sequence[str],
) -> str:
    """`starts`: how the plain cells of each column begin, so that most cells need no more than their text."""
    mark = f' data-status="{escaped(row.mark)}"' if row.mark else ""
    cells = []
    for i, cell in enumerate(row.cells):
        start = starts[i]
        if start is None or cell.is_more_than_text:
            cells.append(_cell(cell, columns[i], names, at, labelled, first=i == 0))
        else:
            cells.append(f"{start}{escaped(cell.text)}</{start[1:3]}>")
    if row.rest is not None:
        span = max(1, len(columns) - len(row.cells))
        cells.append(f'<td class="why" colspan="{span}">{escaped(row.rest)}</td>')
    return f"<tr{mark}>{''.join(cells)}</tr>"


def _cell(
    cell: Cell, column: Column, names: Mapping[str, str], at: str, labelled: Sequence[str], *, first: bool
) -> str:
    start = _start(cell, column, names, labelled, first=first)
    badge = bool(cell.mark) and column.title in _BADGES
    return f"{start}{_content(cell, column, at, badge)}</{start[1:3]}>"


def _start(cell: Cell, column: Column, names: Mapping[str, str], labelled: Sequence[str], *, first: bool) -> str:
    badge = bool(cell.mark) and column.title in _BADGES
    named = first and column.quoted
    kind = _classes(
        "n" if column.right else "",
        names.get(column.title, ""),
        "" if badge else cell.mark,
        "name" if named else "",
    )
    label = f' data-label="{escaped(column.title)}"' if column.title in labelled else ""
    tag, scope = ("th", ' scope="row"') if named else ("td", "")
    return f"<{tag}{scope}{_hint(cell.hint)}{_sorted(cell, column)}{label}{kind}>"


def _content(cell: Cell, column: Column, at: str, badge: bool) -> str:
    text = escaped(cell.text)
    if cell.link:
        text = f'<a href="#{cell.link}{at}">{text}</a>'
    elif cell.address:
        inside = f'<span class="badge {escaped(cell.mark)}">{text}</span>' if badge else text
        text = f'<a href="{escaped(cell.address)}">{inside}</a>{cell.drawing}'
    elif badge:
        text = f'<span class="badge {escaped(cell.mark)}">{text}</span>'
    elif cell.drawing:
        text += cell.drawing
    if cell.small:
        text += f"<small>{escaped(cell.small)}</small>"
    if cell.share is not None:
        text += f' <meter min="0" max="1" value="{cell.share:.4f}"></meter>'
    return text


def _sorted(cell: Cell, column: Column) -> str:
    value = cell.sort if cell.sort is not None else cell.value
    known = column.sort == "number" and isinstance(value, int | float) and math.isfinite(value)
    return f' data-v="{value:.9g}"' if known else ""


def _hint(text: str | None) -> str:
    return f' title="{escaped(text)}"' if text else ""


def _classes(*names: str) -> str:
    found = " ".join(filter(None, names))
    return f' class="{found}"' if found else ""

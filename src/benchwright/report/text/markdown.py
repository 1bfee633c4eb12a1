"""Pieces of Markdown: code spans, running text, tables, lists, folded blocks.

Names and whatever else comes from outside stands in code spans, where neither Markdown nor HTML nor a mention works.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from benchwright.report.document import Cell, Column, ReportTable, Row

_UNPRINTABLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SPECIAL = re.compile(r"([\\`*_\[\]#~|])")


def code(text: str) -> str:
    """A code span of one line that holds any text, inside a table too."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split()) or " "
    longest = max((len(ticks) for ticks in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{line}{space}{fence}".replace("|", "\\|")


def plain(text: str) -> str:
    """Running text of one line, with nothing left in it that Markdown, HTML or a mention could take up."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return _SPECIAL.sub(r"\\\1", html.escape(line, quote=False)).replace("@", "@<!-- -->")


def markdown_table(table: ReportTable) -> str:
    shown = table.shown()
    heads = [plain(c.title) for c in shown.columns] or ["result"]
    rule = ["---:" if c.right else "---" for c in shown.columns] or ["---"]
    rows = [_cells(row, shown.columns, len(heads)) for row in shown.rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows)]
    return "\n".join([*lines, *(line for text in (*shown.in_common, *shown.notes) for line in ("", plain(text)))])


def _cells(row: Row, columns: Sequence[Column], wide: int) -> list[str]:
    """Of a row without numbers the reason, in the first column that is free."""
    cells = [_cell(cell, column) for cell, column in zip(row.cells, columns, strict=False)]
    if row.rest is not None:
        cells = [*cells[: wide - 1], code(row.rest) if row.rest else ""]
    return cells + [""] * (wide - len(cells))


def _cell(cell: Cell, column: Column) -> str:
    text = code(cell.text) if column.quoted and cell.value is not None else plain(cell.text)
    return f"**{text}**" if cell.mark == "failed" else f"{text} ({plain(cell.small)})" if cell.small else text


def bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- ⚠ {plain(text)}" for text in texts)


def code_block(lines: Sequence[str]) -> str:
    lines = [_UNPRINTABLE.sub("", line) for line in lines]
    fence = "`" * max(3, 1 + max((len(t) for line in lines for t in re.findall(r"`+", line)), default=0))
    return "\n".join([f"{fence}text", *lines, fence])


def folded(title: str, content: str) -> str:
    words = html.escape(" ".join(_UNPRINTABLE.sub(" ", title).split()))
    return f"<details><summary><code>{words}</code></summary>\n\n{content}\n\n</details>"

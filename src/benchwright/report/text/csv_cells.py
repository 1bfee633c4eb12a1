"""Rows of comma-separated values that a spreadsheet shows and never runs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import TextIO

# A spreadsheet takes a cell that begins so for a formula; the last four are the same signs in full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-](?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)


def escaped(cell: object) -> object:
    """The cell; a text that a spreadsheet would take for a formula with an apostrophe before it. Numbers stay as they are.

    It can be undone: a text that itself begins with apostrophes and then such a sign gets one more.
    """
    if not isinstance(cell, str) or not cell.lstrip("'").startswith(_FORMULA) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def write_row(file: TextIO, cells: Iterable[object]) -> None:
    write_rows(file, list(cells), [()])


def write_rows(file: TextIO, same: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Rows that all begin with the cells `same`; the rest of each must be numbers. Lines end in a line feed."""
    cells = [escaped(cell) for cell in same]
    # Python's writer quotes line feeds, but carriage returns only where they end lines: then every text is quoted.
    returns = any(isinstance(cell, str) and "\r" in cell for cell in cells)
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL)
    writer.writerows([*cells, *row] for row in rows)

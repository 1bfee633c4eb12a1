"""The document model of reports: sections of tables, notes and logs. Screen, Markdown, HTML, CSV and JSON are renderers of it.

A table is defined once, as fields: what a column is called by people and by machines, and what stands in it for one item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from benchwright.core.note import Note

T = TypeVar("T")
NONE = "–"  # an empty place in a table: nothing was forgotten there
LUXURY = 9  # from this `spare` on, a column is only for those who have the room


class Cell(msgspec.Struct, frozen=True):
    """`text` is for people, `value` for machines and for sorting."""

    text: str = ""
    value: object = None
    hint: str | None = None  # what stands behind it: a doubt, the parts of a figure
    mark: str = ""  # what sets it apart: a status, `noisy`, `slow`
    link: str = ""  # a place of the page
    small: str = ""  # further text, below it
    share: float | None = None  # of a whole, which can be drawn
    sort: float | None = None  # what to sort by, if that is not the value
    drawing: str = ""  # SVG, of our own making

    @property
    def blank(self) -> bool:
        return not self.text and not self.drawing and self.share is None


class Column(msgspec.Struct, frozen=True):
    """`spare`: where room is short, the column with the highest one is left out first, and 0 always stays. A column with a
    `spare` that every row leaves empty is not shown."""

    title: str = ""  # for people; empty: only for machines
    key: str = ""  # in CSV and JSON; empty: only for people
    right: bool = False
    spare: int = 0
    quoted: bool = False  # text of others, such as names
    hint: str | None = None
    sort: str = ""  # `number` or `text`: a page can sort by it


class Row(msgspec.Struct, frozen=True):
    """`rest`, if there is one, takes the place of all cells from `before` on, where people read it."""

    cells: tuple[Cell, ...]
    rest: str | None = None
    before: int = 0
    mark: str = ""

    @property
    def length(self) -> int:
        """How many cells people see."""
        return len(self.cells) if self.rest is None else self.before


class ReportTable(msgspec.Struct, frozen=True, kw_only=True):
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    opened: bool = True  # False: folded where that can be done
    most: int | None = None  # where room is short, so many rows; `rest` then stands for the others
    rest: Row | None = None
    headed: bool = True

    def shown(self) -> ReportTable:
        """For people: the columns that have a title and something to say; holes are marked."""
        kept = [i for i, c in enumerate(self.columns) if c.title and (not c.spare or self._says_something(i))]
        rows = tuple(
            msgspec.structs.replace(
                row, cells=(cells := tuple(_marked(row.cells[i]) for i in kept if i < row.length)), before=len(cells)
            )
            for row in (*self.rows, *([self.rest] if self.rest else []))
        )
        return msgspec.structs.replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            rows=rows[: len(self.rows)],
            rest=rows[-1] if self.rest else None,
        )

    def _says_something(self, column: int) -> bool:
        return any(not row.cells[column].blank for row in self.rows if column < row.length)

    def records(self) -> list[dict[str, object]]:
        """For machines: the values of the columns that have a key."""
        kept = [(i, c.key) for i, c in enumerate(self.columns) if c.key]
        return [{key: row.cells[i].value for i, key in kept} for row in self.rows]


class Field(msgspec.Struct, Generic[T], frozen=True):
    """A column, and what stands in it for an item."""

    column: Column
    cell: Callable[[T], Cell]


def table_of(
    fields: Sequence[Field[T]],
    items: Iterable[T],
    *,
    rest: Callable[[T], tuple[int, str] | None] = lambda item: None,
    mark: Callable[[T], str] = lambda item: "",
    title: str = "",
) -> ReportTable:
    """`rest`: of an item without figures what stands in their place, and before which column."""
    rows = []
    for item in items:
        before, text = rest(item) or (0, None)
        rows.append(Row(tuple(field.cell(item) for field in fields), text, before, mark(item)))
    return ReportTable(columns=tuple(field.column for field in fields), rows=tuple(rows), title=title)


def word(text: str, **more: object) -> Cell:
    """A cell whose text is its value."""
    return Cell(text, text, **more)  # type: ignore[arg-type]


class LogTail(msgspec.Struct, frozen=True):
    """The last lines that a job printed."""

    job: str
    lines: tuple[str, ...]


class MentionedBenchmark(msgspec.Struct, frozen=True):
    """A benchmark that a note is about, by its number in the run, and the evidence there."""

    benchmark: int
    name: str
    evidence: str = ""


class Callout(msgspec.Struct, frozen=True):
    """A note as it is shown, with the benchmarks it is about; of a failure, with its log."""

    note: Note
    mentions: tuple[MentionedBenchmark, ...] = ()
    detail: str | None = None
    log: LogTail | None = None


class ReportSection(msgspec.Struct, frozen=True, kw_only=True):
    """`heading`: a name, then what else is to be said in the same line. `about` is for those who have the room."""

    heading: tuple[str, ...]
    about: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    callouts: tuple[Callout, ...] = ()
    logs: tuple[LogTail, ...] = ()


def _marked(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, text=NONE) if cell.blank else cell

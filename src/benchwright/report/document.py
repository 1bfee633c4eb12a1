"""The document model of reports: sections of tables, pictures, notes and logs. Screen, Markdown, HTML, CSV and JSON render it.

A table is defined once, as fields: what a column is called by people and by machines, and what stands in it for one item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from benchwright.core.note import Note

T = TypeVar("T")
NONE = "–"  # an empty place in a table: nothing was forgotten there
OPTIONAL = 9  # from this `drop_priority` on, a column is only for those who have the room


class Cell(msgspec.Struct, frozen=True, gc=False):
    """`text` is for people, `value` for machines and for sorting."""

    text: str = ""
    value: object = None
    hint: str | None = None  # what stands behind it: a doubt, the parts of a figure
    mark: str = ""  # what sets it apart: a status, `noisy`, `slow`
    link: str = ""  # a place of the page
    address: str = ""  # another page
    small: str = ""  # further text, below it
    share: float | None = None  # of a whole, which can be drawn
    sort: float | None = None  # what to sort by, if that is not the value
    drawing: str = ""  # SVG, of our own making

    @property
    def blank(self) -> bool:
        return not self.text and not self.drawing and self.share is None

    @property
    def is_more_than_text(self) -> bool:
        return bool(self.hint or self.mark or self.link or self.address or self.small or self.drawing) or (
            self.share is not None
        )


class Column(msgspec.Struct, frozen=True):
    """`drop_priority`: where room is short, the column with the highest one is left out first, and 0 always stays. A column that every
    row leaves empty is not shown. `setting`: how it was measured; what is the same in every row is said once, below."""

    title: str = ""  # for people; empty: only for machines
    key: str = ""  # in CSV and JSON; empty: only for people
    right: bool = False
    drop_priority: int = 0
    quoted: bool = False  # text of others, such as names
    hint: str | None = None
    sort: str = ""  # `number` or `text`: a page can sort by it
    setting: bool = False
    literal: bool = False  # the title is a name, shown as it is


class Row(msgspec.Struct, frozen=True, gc=False):
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
    notes: tuple[str, ...] = ()  # what its figures are, said below it
    same: tuple[str, ...] = ()  # of a table as it is shown: what all its rows have in common

    @property
    def is_drawing(self) -> bool:
        cells = [cell for row in self.rows for cell in row.cells]
        return bool(cells) and all(cell.drawing and not cell.text for cell in cells)

    def shown(self) -> ReportTable:
        """For people: the columns that have a title and differ in something; holes are marked."""
        kept = [i for i, c in enumerate(self.columns) if c.title and self._says_something(i)]
        common = [i for i in kept if self.columns[i].setting and self._is_the_same(i)]
        kept = [i for i in kept if i not in common]
        rows = tuple(_shown(row, kept) for row in (*self.rows, *([self.rest] if self.rest else [])))
        return msgspec.structs.replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            rows=rows[: len(self.rows)],
            rest=rows[-1] if self.rest else None,
            same=tuple(f"{self.columns[i].title} {self._cells(i)[0].text}" for i in common),
        )

    @property
    def in_common(self) -> tuple[str, ...]:
        """`In every row: status ok.`, of a table as it is shown."""
        return (f"In every row: {', '.join(self.same)}.",) if self.same else ()

    def _cells(self, column: int) -> list[Cell]:
        return [row.cells[column] for row in self.rows if column < row.length]

    def _says_something(self, column: int) -> bool:
        """Or is where the rows without figures say why."""
        return any(
            (row.rest and row.before == column) or (column < row.length and not row.cells[column].blank)
            for row in self.rows
        )

    def _is_the_same(self, column: int) -> bool:
        cells = self._cells(column)
        return len(self.rows) > 1 and bool(cells) and len({(cell.text, cell.mark) for cell in cells}) == 1

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
    opened: bool = True,
    notes: tuple[str, ...] = (),
) -> ReportTable:
    """`rest`: of an item without figures what stands in their place, and before which column."""
    rows = []
    cells = [field.cell for field in fields]
    for item in items:
        before, text = rest(item) or (0, None)
        rows.append(Row(tuple([cell(item) for cell in cells]), text, before, mark(item)))
    columns = tuple(field.column for field in fields)
    return ReportTable(columns=columns, rows=tuple(rows), title=title, opened=opened, notes=notes)


def word(text: str, **more: object) -> Cell:
    """A cell whose text is its value."""
    return Cell(text, text, **more)  # type: ignore[arg-type]


class FigureRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a picture: `value` on the axis, from `low` to `high` where it may really lie; `dots` are its launches.
    A row without a value says why in `text`."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    dots: tuple[float, ...] = ()
    text: str = ""  # the figure as people read it
    small: str = ""  # further text
    link: str = ""
    mark: str = ""  # what sets it apart: a status, a verdict


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One picture: rows on a common axis. `line` is what they are compared with, and `margin` what counts as no difference."""

    title: str
    axis: str
    rows: tuple[FigureRow, ...]
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False
    bars: bool = False  # from the left end
    line: float | None = None
    margin: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

    def is_beyond(self, value: float) -> bool:
        """Whether it has no place on the axis, which shows it at its end."""
        return not self.low <= value <= self.high

    @property
    def cuts(self) -> bool:
        """Whether anything lies beyond the axis."""
        known = (v for row in self.rows for v in (row.value, row.low, row.high, *row.dots) if v is not None)
        return any(map(self.is_beyond, known))

    def at(self, value: float) -> float:
        """Where a value lies, as a fraction of the axis; what is beyond it lies at its end."""
        if self.logarithmic:
            low, high, value = (math.log(max(x, 1e-300)) for x in (self.low, self.high, value))
        else:
            low, high = self.low, self.high
        return min(max((value - low) / (high - low), 0.0), 1.0)


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

    @property
    def written(self) -> tuple[ReportTable, ...]:
        """Its tables without drawings, which only HTML can show."""
        return tuple(t for t in self.tables if not t.is_drawing)


def _shown(row: Row, kept: Sequence[int]) -> Row:
    """With the columns that are kept, and holes marked."""
    length, cells = row.length, row.cells
    found = tuple([cells[i] if cells[i].text else _marked(cells[i]) for i in kept if i < length])
    return Row(found, row.rest, len(found), row.mark)


def _marked(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, text=NONE) if cell.blank else cell

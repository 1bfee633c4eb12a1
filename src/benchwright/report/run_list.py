"""A list of runs for the terminal, and a run in a few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from benchwright.core.quantities import format_bytes
from benchwright.report.base import Report
from benchwright.report.document import Cell, Column, Field, table_of, word
from benchwright.report.text.layout import left_out_words, table_lines
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_number, format_value, short_unit
from benchwright.report.text.one_line import clip, one_line

_LEAST_NAME = 20
_MOST = 3  # benchmarks that a headline names
_MOST_REVISION = 28
_BESIDE = 42  # what the other columns take, more or less


class RunLine(Protocol):
    """A run in a list."""

    @property
    def id(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def revision(self) -> str: ...
    @property
    def benchmarks(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def headline(self) -> str: ...
    @property
    def ending(self) -> str: ...
    @property
    def annotation(self) -> str | None: ...
    @property
    def size_bytes(self) -> int: ...


def run_list(rows: Sequence[RunLine], *, width: int = 80) -> str:
    """One line a run, or more if its id is long: an id is never cut. Its headline and annotation stand below it, and its uid
    if another run is called the same."""
    if not rows:
        return "no runs\n"
    called = Counter(row.id for row in rows)
    broadest = max(_LEAST_NAME, width - _BESIDE)
    fields: list[Field[RunLine]] = [
        Field(Column("run"), lambda row: word(one_line(row.id) if len(row.id) <= broadest else " ")),
        Field(Column("status"), lambda row: word(row.status)),
        Field(Column("benchmarks", right=True), lambda row: Cell(_count(row))),
        Field(Column("size", right=True, drop_priority=1), lambda row: Cell(format_bytes(row.size_bytes))),
        Field(Column("revision", drop_priority=3), lambda row: Cell(clip(one_line(row.revision), _MOST_REVISION))),
        Field(Column("host", drop_priority=2, setting=True), lambda row: Cell(row.host)),
    ]
    table = table_of(fields, rows)
    head, *lines = table_lines(table, width)
    shown = [head]
    for row, line in zip(rows, lines, strict=False):
        if len(row.id) > broadest:
            name = one_line(row.id)
            shown += [f" {name[at : at + width - 1]}" for at in range(0, len(name), width - 1)]
        shown.append(line)
        below = (row.uid if called[row.id] > 1 else "", row.headline, row.annotation)
        shown += [clip(f"   {text}", width) for text in below if text]
        shown += [f"   {one_line(text)}" for text in row.ending.split("; ") if text]  # a command to type is never cut
    return "\n".join([*shown, *lines[len(rows) :], *left_out_words([table], width, "--json")]) + "\n"


def _count(row: RunLine) -> str:
    return f"{row.failed}/{row.benchmarks} ✗" if row.failed else str(row.benchmarks)


def headline_words(report: Report) -> str:
    """`score 573.7 over 4 of 6` of a suite; else what each benchmark reached: `rate 1,340.0 items/s`; empty without numbers."""
    score = report.score
    if score is not None and score.value is not None:
        over = f" over {score.counted} of {score.expected}" if score.counted < score.expected else ""
        return f"score {format_number(score.value)}{over}"
    found = []
    for number, result in enumerate(report.run.results):
        if summary := next(iter(report.headline(number)), None):
            figure = format_value(summary.value, short_unit(summary.unit))
            alone = len(report.run.results) == 1
            found.append(
                f"{metric_name(summary.metric, {})} {figure}" if alone else f"{result.benchmark.name}: {figure}"
            )
    more = [f"and {counted(len(found) - _MOST, 'more', 'more')}"] if len(found) > _MOST else []
    return " ".join([", ".join(found[:_MOST]), *more]).strip()

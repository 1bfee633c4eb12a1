"""Comma-separated values: one row for each benchmark, metric and label set, for spreadsheets and other programs."""

from __future__ import annotations

import io
from collections.abc import Sequence

from benchwright.report.base import Report
from benchwright.report.document import ReportTable
from benchwright.report.tables.results import derived_rows, metric_rows, results_table
from benchwright.report.text.csv_cells import write_row
from benchwright.report.text.numbers import json_body


class CsvReporter:
    """A benchmark without numbers has one row too, with its status: failures are not left out.

    A run of nothing but one kind may have another table, such as a row for each model; `metrics` asks for this one anyway.
    """

    name = "csv"

    def __init__(self, *, metrics: bool = False) -> None:
        self._metrics = metrics

    def render(self, report: Report) -> str:
        own = report.added.table
        if own is not None and not self._metrics:
            return csv_text([own])
        return csv_text([results_table([*metric_rows(report, every=True), *derived_rows(report)])])


def csv_text(tables: Sequence[ReportTable], *, finite: bool = False) -> str:
    """The values of all columns that have a key, under one header; `finite`: empty where a number is not."""
    keys = dict.fromkeys(c.key for table in tables for c in table.columns if c.key)
    text = io.StringIO()
    write_row(text, keys)
    for record in (json_body(record) if finite else record for table in tables for record in table.records()):
        write_row(text, ["" if (value := record.get(key)) is None else value for key in keys])
    return text.getvalue()

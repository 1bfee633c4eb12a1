"""A table of comma-separated values: one row for each benchmark, metric and label set, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from benchwright.domain.run import Result, Run
from benchwright.domain.summary import Summary
from benchwright.reporters.base import Report

if TYPE_CHECKING:
    from _csv import Writer as CsvWriter

COLUMNS = (
    "run",
    "benchmark",
    "status",
    "reason",
    "metric",
    "unit",
    "direction",
    "value",
    "low",
    "high",
    "launches",
    "labels",
)


class CsvReporter:
    """A benchmark without numbers has one row too, with its status: what failed is not left out."""

    name = "csv"

    def render(self, report: Report) -> str:
        text = io.StringIO()
        writer_for(COLUMNS, text).writerow(COLUMNS)
        for result in report.run.results:
            summaries = report.summaries.get(result.benchmark.name, ())
            for row in _rows(report.run, result, summaries):
                writer_for(row, text).writerow(row)
        return text.getvalue()


def writer_for(texts: Iterable[object], file: TextIO) -> CsvWriter:
    """A writer of rows with these texts, lines ending in a line feed.

    Python's own quotes line feeds, but carriage returns only where they end lines: then every text is quoted.
    """
    returns = any(isinstance(text, str) and "\r" in text for text in texts)
    return csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL)


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels in one column: a JSON object with sorted keys; empty if there are none."""
    return json.dumps(labels, sort_keys=True, ensure_ascii=False) if labels else ""


def _rows(run: Run, result: Result, summaries: Sequence[Summary]) -> list[list[object]]:
    reason = result.reason.value if result.reason else ""
    head: list[object] = [run.id, result.benchmark.name, result.status.value, reason]
    if not summaries:
        return [head + [""] * (len(COLUMNS) - len(head))]
    return [[*head, *_cells(summary)] for summary in summaries]


def _cells(summary: Summary) -> list[object]:
    low, high = (summary.interval.low, summary.interval.high) if summary.interval else ("", "")
    return [
        summary.metric,
        summary.unit or "",
        summary.direction.value,
        summary.value,
        low,
        high,
        summary.launches,
        labels_text(summary.labels),
    ]

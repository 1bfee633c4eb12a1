"""A table of comma-separated values: one row for each benchmark, metric and label set, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from benchwright.domain.run import Result, Run
from benchwright.domain.summary import Percentile, Summary
from benchwright.reporters.base import Report
from benchwright.reporters.model_rows import only_models

if TYPE_CHECKING:
    from _csv import Writer as CsvWriter

PERCENTS = (1, 5, 10, 90, 95, 99)  # of single samples: the low ones where higher is better, else the high ones
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
    "widened",
    "remarks",
    "samples",
    *(name for percent in PERCENTS for name in (f"p{percent}", f"p{percent}_bound")),
)


class CsvReporter:
    """A benchmark without numbers has one row too, with its status: what failed is not left out.

    A run of nothing but models has a table of its own, a row for each model (`models_csv`); `metrics` asks for this one anyway.
    """

    name = "csv"

    def __init__(self, *, metrics: bool = False) -> None:
        self._metrics = metrics

    def render(self, report: Report) -> str:
        if only_models(report) and not self._metrics:
            from benchwright.reporters.models_csv import models_csv

            return models_csv([report])
        text = io.StringIO()
        writer_for(COLUMNS, text).writerow(COLUMNS)
        for result in report.run.results:
            summaries = report.summaries.get(result.benchmark.name, ())
            for row in _rows(report.run, result, summaries):
                writer_for(row, text).writerow(row)
        for row in (*_efficiency(report), *_scores(report)):
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


def _efficiency(report: Report) -> list[list[object]]:
    """What was done in a second, as `achieved`, and the share of the peak, where that is known, as `of_peak`."""
    rows: list[list[object]] = []
    for result in report.run.results:
        for e in report.efficiency.get(result.benchmark.name, ()):
            labels = labels_text(
                {"quantity": e.work.quantity, "place": e.work.place} | {"kind": e.work.kind or "unknown"}
            )
            reason = result.reason.value if result.reason else ""
            head = [report.run.id, result.benchmark.name, result.status.value, reason]
            figures = [("achieved", e.unit, e.achieved), *([("of_peak", "", e.share)] if e.share is not None else [])]
            for metric, unit, value in figures:
                row: list[object] = [*head, metric, unit, "higher", value, "", "", "", labels]
                rows.append(row + [""] * (len(COLUMNS) - len(row)))
    return rows


def _scores(report: Report) -> list[list[object]]:
    """Of a suite: the score of each benchmark that has one, and in a row without a benchmark that of all."""
    if report.score is None:
        return []
    scores = [(s.name, s.status, s.value, s.interval, s.unit) for s in report.score.benchmarks]
    scores.append(("", report.run.status, report.score.value, report.score.interval, None))
    rows: list[list[object]] = []
    for name, status, value, interval, unit in scores:
        if value is not None:
            low, high = (interval.low, interval.high) if interval else ("", "")
            row: list[object] = [report.run.id, name, status.value, "", "score", unit or "", "higher", value, low, high]
            rows.append(row + [""] * (len(COLUMNS) - len(row)))
    return rows


def _cells(summary: Summary) -> list[object]:
    low, high = (summary.interval.low, summary.interval.high) if summary.interval else ("", "")
    percentiles = {p.percent: p for p in summary.percentiles}
    return [
        summary.metric,
        summary.unit or "",
        summary.direction.value,
        summary.value,
        low,
        high,
        summary.launches,
        labels_text(summary.labels),
        summary.interval.widened if summary.interval else "",
        " ".join(remark.kind for remark in summary.remarks),
        summary.percentiles[0].samples if summary.percentiles else "",
        *(cell for percent in PERCENTS for cell in _percentile_cells(percentiles.get(percent))),
    ]


def _percentile_cells(percentile: Percentile | None) -> tuple[object, object]:
    if percentile is None:
        return "", ""
    return percentile.value, "" if percentile.bound is None else percentile.bound

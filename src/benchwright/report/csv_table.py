"""A table of comma-separated values: one row for each benchmark, metric and label set, for spreadsheets and other programs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence

from benchwright.core.results.summary import Percentile, Summary
from benchwright.core.run import Result, Run
from benchwright.report.base import Report
from benchwright.report.models.rows import only_models
from benchwright.report.score.screen import no_interval_words
from benchwright.report.text.csv_cells import write_row
from benchwright.report.text.remarks import noted

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
    "notes",
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
            from benchwright.report.models.csv import models_csv

            return models_csv([report])
        text = io.StringIO()
        write_row(text, COLUMNS)
        for result in report.run.results:
            summaries = report.summaries.get(result.benchmark.name, ())
            for row in _rows(report.run, result, summaries):
                write_row(text, row)
        for row in (*_efficiency(report), *_scores(report)):
            write_row(text, row)
        return text.getvalue()


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels in one column: a JSON object with sorted keys; empty if there are none."""
    return json.dumps(labels, sort_keys=True, ensure_ascii=False) if labels else ""


def notes_text(run: Run, result: Result) -> str:
    """What makes a number doubtful, of its run, its benchmark and its launches: each once, separated by semicolons."""
    return "; ".join(dict.fromkeys([*map(str, noted(result)), *(note.text for note in run.notes)]))


def _rows(run: Run, result: Result, summaries: Sequence[Summary]) -> list[list[object]]:
    reason = result.reason.value if result.reason else ""
    head: list[object] = [run.id, result.benchmark.name, result.status.value, reason]
    notes = notes_text(run, result)
    if not summaries:
        row = [*head, *[""] * (len(COLUMNS) - len(head))]
        row[COLUMNS.index("notes")] = notes
        return [row]
    return [[*head, *_cells(summary, notes)] for summary in summaries]


def _efficiency(report: Report) -> list[list[object]]:
    """What was done in a second, as `achieved`, and the share of the peak as `of_peak`: without a value, and with the reason
    among the remarks, where a peak was measured that cannot be trusted."""
    rows: list[list[object]] = []
    for result in report.run.results:
        for e in report.efficiency.get(result.benchmark.name, ()):
            labels = labels_text(
                {"quantity": e.work.quantity, "place": e.work.place} | {"kind": e.work.kind or "unknown"}
            )
            reason = result.reason.value if result.reason else ""
            head = [report.run.id, result.benchmark.name, result.status.value, reason]
            figures: list[tuple[str, str, object, str]] = [("achieved", e.unit, e.achieved, "")]
            if e.peak is not None:
                figures.append(("of_peak", "", "" if e.share is None else e.share, e.why_no_share or ""))
            for metric, unit, value, remark in figures:
                row: list[object] = [*head, metric, unit, "higher", value, "", "", "", labels, "", remark]
                rows.append(row + [""] * (len(COLUMNS) - len(row)))
    return rows


def _scores(report: Report) -> list[list[object]]:
    """Of a suite: the score of each benchmark that has one, and in a row without a benchmark that of all."""
    if report.score is None:
        return []
    scores = [(s.name, s.status, s.value, s.interval, s.unit) for s in report.score.benchmarks]
    scores.append(("", report.run.status, report.score.value, None, None))
    rows: list[list[object]] = []
    for name, status, value, interval, unit in scores:
        if value is not None:
            low, high = (interval.low, interval.high) if interval else ("", "")
            row: list[object] = [report.run.id, name, status.value, "", "score", unit or "", "higher", value, low, high]
            row += [""] * (len(COLUMNS) - len(row))
            row[COLUMNS.index("notes")] = "" if name else no_interval_words(report.score) or ""
            rows.append(row)
    return rows


def _cells(summary: Summary, notes: str) -> list[object]:
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
        " ".join(remark.kind or "" for remark in summary.remarks),
        notes,
        summary.percentiles[0].samples if summary.percentiles else "",
        *(cell for percent in PERCENTS for cell in _percentile_cells(percentiles.get(percent))),
    ]


def _percentile_cells(percentile: Percentile | None) -> tuple[object, object]:
    if percentile is None:
        return "", ""
    return percentile.value, "" if percentile.bound is None else percentile.bound

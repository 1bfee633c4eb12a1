"""What `bw plot` draws: a run's samples in the order they were taken and how they are distributed, or a benchmark over runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.core.results.summary import Summary
from benchwright.core.run import Result, Run
from benchwright.report.base import Report
from benchwright.report.document import Figure, FigureRow
from benchwright.report.pictures import LEAST_SPREAD, run_picture
from benchwright.report.tables.results import spread_cell
from benchwright.report.text.axis import MOST_TICKS, reach
from benchwright.report.text.canvas import axis_marks, histogram, scatter
from benchwright.report.text.layout import wrapped
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_value
from benchwright.report.text.picture import figure_lines

_HEIGHT, _BARS = 10, 8


class PastResult(NamedTuple):
    """A metric of a benchmark in one of several runs; None where that run has no number of it."""

    run: Run
    result: Result
    summary: Summary | None


def run_plot(report: Report, numbers: Sequence[int], metric: str | None, *, most: int) -> str:
    """The picture of the run, if it is about more than one benchmark, then each of the first `most` benchmarks by itself."""
    picture = run_picture(report) if len(numbers) > 1 and metric is None else None
    blocks = [figure_lines(picture, report.width)] if picture is not None else []
    blocks += [_benchmark(report, number, metric) for number in numbers[:most]]
    if len(numbers) > most:
        more = f"{counted(len(numbers) - most, 'more benchmark')} not drawn; name one: bw plot {report.run.id} BENCH"
        blocks.append(wrapped(more, report.width, " "))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def chosen(summaries: Sequence[Summary], headline: Sequence[Summary], metric: str | None) -> Summary | None:
    """The metric that was asked for, else the one that the benchmark is known by."""
    return next((s for s in (headline if metric is None else summaries) if metric in (None, s.metric)), None)


def _benchmark(report: Report, number: int, metric: str | None) -> list[str]:
    result, width = report.run.results[number], report.width
    name = result.benchmark.name
    summary = chosen(report.summaries.get(name, ()), report.headline(number), metric)
    if summary is None:
        reason = result.detail or (result.reason.value.replace("_", " ") if result.reason else "nothing measured")
        return wrapped(f"{name}  {result.status.value}: {reason}", width, " ")
    found = [
        m
        for launch in result.counted
        for m in launch.measurements
        if m.metric == summary.metric and m.labels == summary.labels and m.samples
    ]
    samples = list(itertools.chain.from_iterable(m.samples for m in found))
    warm = sum(len(m.warmup_samples) for m in found)
    bad = sum(not math.isfinite(v) for v in samples)
    value = format_value(summary.value, summary.unit)
    spread = spread_cell(summary).text if summary.interval is not None else ""
    said = [counted(len(found), "launch", "launches"), counted(len(samples), "sample")]
    said += [f"{warm:,} of the warm-up not drawn"] if warm else []
    said += [f"{bad:,} not finite, not drawn"] if bad else []
    head = f"{name}  {metric_name(summary.metric, summary.labels)} {value} {spread}".rstrip()
    each = "sample" if len(samples) > len(found) else "launch"
    below = f"{each} 1 to {len(samples):,}" + (", launch after launch" if each == "sample" and len(found) > 1 else "")
    drawn = scatter(list(enumerate(samples)), width=width, height=_HEIGHT, unit=summary.unit, below=below)
    bars = histogram(samples, width=width, rows=_BARS, unit=summary.unit) if len(samples) > 2 else []
    return [
        *wrapped(head, width, " "),
        *wrapped(", ".join(said), width, "   "),
        *drawn,
        *([" how many samples lie where:"] if bars else []),
        *bars,
    ]


def history_plot(name: str, past: Sequence[PastResult], width: int) -> str:
    """A benchmark's metric in runs of the past, oldest first: one row each, on one axis."""
    known = [p.summary for p in past if p.summary is not None and math.isfinite(p.summary.value)]
    if not known:
        return f" {name}: no numbers\n"
    last = known[-1]
    hosts = {p.run.machine.hostname for p in past}
    rows = tuple(_past_row(p, last, several_hosts=len(hosts) > 1) for p in past)
    values = [v for row in rows for v in (*row.dots, row.value, row.low, row.high) if v is not None]
    low, high = reach(values, least=LEAST_SPREAD * abs(last.value))
    better = {"higher": ", higher is better", "lower": ", lower is better"}.get(last.direction.value, "")
    notes = ["· launches, ━ 95 % confidence interval, ┃ median."]
    if len(hosts) > 1:
        notes.append(f"⚠ from {len(hosts)} machines: differences between them say nothing about the program.")
    if low > 0:
        notes.append("The axis does not begin at 0; 'bw compare' says which differences are real.")
    figure = Figure(
        title=f"{name}: {metric_name(last.metric, last.labels)}{better}",
        axis="oldest run first",
        rows=rows,
        low=low,
        high=high,
        ticks=axis_marks(low, high, last.unit, MOST_TICKS),
        notes=tuple(notes),
    )
    return "\n".join(figure_lines(figure, width)) + "\n"


def _past_row(past: PastResult, last: Summary, *, several_hosts: bool) -> FigureRow:
    s, host = past.summary, past.run.machine.hostname if several_hosts else ""
    if s is None or not math.isfinite(s.value):
        reason = past.result.reason.value.replace("_", " ") if past.result.reason else "no such metric"
        words = reason if past.result.status.value == "ok" else f"{past.result.status.value}: {reason}"
        return FigureRow(name=past.run.id, text=words, small=host)
    if s.unit != last.unit:
        return FigureRow(name=past.run.id, text=f"{format_value(s.value, s.unit)} (another unit)", small=host)
    ends = s.interval
    return FigureRow(
        name=past.run.id,
        value=s.value,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        dots=tuple(v for v in s.values if math.isfinite(v)),
        text=format_value(s.value, s.unit),
        small=host,
    )

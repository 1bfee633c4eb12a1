"""The table of results: a row for each benchmark, metric and label set; one for a benchmark without numbers, too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from benchwright.core.metric import Direction
from benchwright.core.provenance import revision_words
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.core.summary import Interval, Percentile, Summary
from benchwright.report.base import Report
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.figures.text import sparkline
from benchwright.report.notes import notes_text
from benchwright.report.tables.scores import meaning_words, no_interval_words, score_unit
from benchwright.report.text.metrics import MEMORY, NOISY, memory_summaries, memory_words, metric_name, one_memory
from benchwright.report.text.numbers import format_ends, format_value, percent, plain_number, short_unit

WORTH_SAYING = 1.05  # from here on it is said that an interval was widened
PERCENTS = (1, 5, 10, 90, 95, 99)  # of single samples: the low ones where higher is better, else the high ones
STATUS_ORDER = {Status.FAILED: 0, Status.INTERRUPTED: 1, Status.PENDING: 2, Status.SKIPPED: 3, Status.OK: 4}


class MetricRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row. `summary` None: a benchmark without numbers, or a figure that follows from others (a score, a share)."""

    run: str
    number: int | None  # of its benchmark in the run
    name: str
    status: Status
    reason: str = ""
    detail: str = ""
    metric: str = ""
    unit: str = ""
    direction: str = ""
    value: float | None = None
    interval: Interval | None = None
    launches: int | None = None
    labels: Mapping[str, str] = {}
    remarks: str = ""
    notes: str = ""
    percentiles: tuple[Percentile, ...] = ()
    summary: Summary | None = None
    result: Result | None = None
    beside: Sequence[Summary] = ()  # all metrics of the benchmark
    revision: str = ""


def metric_rows(report: Report, *, every: bool = False) -> list[MetricRow]:
    """Of each benchmark what matters, unless `every` metric is asked for."""
    rows = []
    for number, result in enumerate(report.run.results):
        summaries = report.summaries.get(result.benchmark.name, ())
        shown = summaries if every else report.headline(number)
        head = _head(report.run, number, result, () if every else summaries)  # memory is a metric itself
        rows += [_of_summary(head, s) for s in shown] or [head]
    return rows


def derived_rows(report: Report) -> Iterator[MetricRow]:
    """`achieved` and `of_peak`, without a value and with the reason where a peak cannot be trusted; then scores."""
    for number, result in enumerate(report.run.results):
        head = msgspec.structs.replace(_head(report.run, number, result, ()), notes="", direction="higher")
        for e in report.efficiency.get(result.benchmark.name, ()):
            labels = {"quantity": e.work.quantity, "place": e.work.place, "kind": e.work.kind or "unknown"}
            whole = msgspec.structs.replace(head, labels=labels)
            yield msgspec.structs.replace(whole, metric="achieved", unit=e.unit, value=e.achieved)
            if e.peak is not None:
                yield msgspec.structs.replace(whole, metric="of_peak", value=e.share, remarks=e.why_no_share or "")
    score = report.score
    for s in score.benchmarks if score is not None else ():
        if s.value is not None:
            yield MetricRow(
                run=report.run.id,
                number=None,
                name=s.name,
                status=s.status,
                metric="score",
                unit=s.unit or "",
                direction="higher",
                value=s.value,
                interval=s.interval,
            )
    if score is not None and score.value is not None:
        yield MetricRow(
            run=report.run.id,
            number=None,
            name="",
            status=report.run.status,
            metric="score",
            direction="higher",
            value=score.value,
            unit=score_unit(score) or "",
            notes="; ".join(filter(None, (meaning_words(score), no_interval_words(score)))),
        )


def results_table(rows: Sequence[MetricRow], *, drawn: bool = False) -> ReportTable:
    """`drawn`: with the course of each metric over the launches, for those who can show it."""
    fields = FIELDS if drawn else [field for field in FIELDS if field is not _COURSE]
    memory = any(memory_summaries(row.beside) for row in rows)
    notes = (f"Memory is the peak of a launch, the median of all launches. {MEMORY}.",) if memory else ()
    return table_of(fields, rows, rest=_rest, mark=lambda row: row.status.value, notes=notes)


def _head(run: Run, number: int, result: Result, summaries: Sequence[Summary]) -> MetricRow:
    return MetricRow(
        run=run.id,
        number=number,
        name=result.benchmark.name,
        status=result.status,
        reason=result.reason.value if result.reason else "",
        detail=result.detail or "",
        notes=notes_text(run, result),
        result=result,
        beside=summaries,
        revision=revision_of(run, result),
    )


def revision_of(run: Run, result: Result) -> str:
    """Of the side of an A/B that the benchmark is, else of the run; empty if it is unknown."""
    return result.benchmark.labels.get("revision") or revision_words(run.revisions)


def _of_summary(head: MetricRow, s: Summary) -> MetricRow:
    return msgspec.structs.replace(
        head,
        metric=s.metric,
        unit=s.unit or "",
        direction=s.direction.value,
        value=s.value,
        interval=s.interval,
        launches=s.launches,
        labels=s.labels,
        remarks=" ".join(note.kind or "" for note in s.remarks),
        percentiles=s.percentiles,
        summary=s,
    )


def _rest(row: MetricRow) -> tuple[int, str] | None:
    """Why there are no numbers."""
    return None if row.metric else (_FIGURES_FROM, row.detail or row.reason.replace("_", " ") or "nothing measured")


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels in one column: a JSON object with sorted keys; empty if there are none."""
    return json.dumps(labels, sort_keys=True, ensure_ascii=False) if labels else ""


def _name(row: MetricRow) -> Cell:
    return word(row.name, link="" if row.number is None else f"b{row.number}")


def _status(row: MetricRow) -> Cell:
    return word(row.status.value, mark=row.status.value, sort=STATUS_ORDER[row.status])


def _metric(row: MetricRow) -> Cell:
    return Cell(metric_name(row.metric, row.labels) if row.metric else "", row.metric)


def _value(row: MetricRow) -> Cell:
    return Cell("" if row.value is None else format_value(row.value, short_unit(row.unit)), row.value)


def spread_cell(s: Summary | None, *, with_interval: bool = True) -> Cell:
    """`± 0.4 %` with the ends of the interval; of too few launches only their range."""
    apart = None if s is None else s.spread
    if s is None or apart is None:
        return Cell(hint="too few launches to tell")
    mark = "noisy" if apart > NOISY else ""
    if s.interval is None or not with_interval:
        ends = " to ".join(format_ends(min(s.values), max(s.values), short_unit(s.unit)))
        return Cell(ends, plain_number(apart), "the range of the launches; 6 launches or more give an interval", mark)
    ends = " to ".join(format_ends(s.interval.low, s.interval.high, short_unit(s.unit)))
    wider = ", widened" if s.interval.widened > WORTH_SAYING else ""
    hint = "95 % confidence interval of the median over launches"
    return Cell(f"± {percent(apart)}", plain_number(apart), hint, mark, small=ends + wider)


def _best(row: MetricRow) -> Cell:
    """Of several launches."""
    s = row.summary
    return Cell() if s is None or s.launches < 2 or not best_words(s) else Cell(best_words(s), plain_number(s.best))


def best_words(s: Summary) -> str:
    """Beside the median, whose unit it shares where it says none; nothing for what gets neither better nor worse."""
    return "" if s.direction is Direction.NEITHER else format_ends(s.best, s.value, short_unit(s.unit))[0]


def _course(row: MetricRow) -> Cell:
    drawn = row.summary is not None and row.result is not None
    return Cell(drawing=sparkline(row.summary, row.result) if drawn else "")  # type: ignore[arg-type]


def _memory(row: MetricRow) -> Cell:
    peaks = memory_summaries(row.beside)
    if not peaks:
        return Cell()
    return Cell(one_memory(peaks[0]), plain_number(peaks[0].value), memory_words(row.beside))


def _end(which: str) -> Field[MetricRow]:
    return Field(Column(key=which), lambda row: Cell(value=getattr(row.interval, which, None)))


def _percentile(percent_: int) -> list[Field[MetricRow]]:
    def of(row: MetricRow, field: str) -> Cell:
        found = next((p for p in row.percentiles if p.percent == percent_), None)
        return Cell(value=getattr(found, field, None))

    return [
        Field(Column(key=f"p{percent_}"), lambda row: of(row, "value")),
        Field(Column(key=f"p{percent_}_bound"), lambda row: of(row, "bound")),
    ]


def _machine(key: str) -> Field[MetricRow]:
    return Field(Column(key=key), lambda row: Cell(value=getattr(row, key)))


_COURSE: Field[MetricRow] = Field(Column("by launch", drop_priority=4), _course)
_FIGURES_FROM = 4  # what a benchmark without numbers has, too
FIELDS: tuple[Field[MetricRow], ...] = (
    _machine("run"),
    Field(Column("benchmark", "benchmark", quoted=True, sort="text"), _name),
    Field(Column("status", "status", sort="number", setting=True), _status),
    _machine("reason"),
    Field(Column("metric", "metric", quoted=True, sort="text", setting=True), _metric),
    _machine("unit"),
    _machine("direction"),
    Field(Column("value", "value", right=True, sort="number"), _value),
    _end("low"),
    _end("high"),
    Field(Column("± 95 %", right=True, sort="number"), lambda row: spread_cell(row.summary)),
    Field(Column("best", right=True, drop_priority=2, sort="number"), _best),
    Field(
        Column("launches", "launches", right=True, drop_priority=1, sort="number", setting=True),
        lambda row: Cell(_count(row.launches), row.launches),
    ),
    _COURSE,
    Field(Column(key="labels"), lambda row: Cell(value=labels_text(row.labels))),
    Field(
        Column(key="widened"), lambda row: Cell(value=row.interval.widened if row.summary and row.interval else None)
    ),
    _machine("remarks"),
    _machine("notes"),
    _machine("revision"),
    Field(Column(key="samples"), lambda row: Cell(value=row.percentiles[0].samples if row.percentiles else None)),
    *(field for percent_ in PERCENTS for field in _percentile(percent_)),
    Field(Column("memory", right=True, drop_priority=3, sort="number"), _memory),
)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


BETTER = {Direction.HIGHER: "higher is better", Direction.LOWER: "lower is better", Direction.NEITHER: ""}

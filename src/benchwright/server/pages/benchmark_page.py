"""`/benchmarks`: of each benchmark the newest value on every machine, and how it got there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.figures.text import spark_of
from benchwright.report.text.metrics import metric_label, metric_name
from benchwright.report.text.numbers import counted, format_value, percent, short_unit
from benchwright.server.pages.frame import Archive, Asked, FormField, PageBlock, page
from benchwright.server.queries import headline_series, metric_names, recent_values
from benchwright.store.base import RunFilter, SummaryFilter, SummarySeries

_AT_ONCE = 100  # series of a page
_POINTS = 20
_MOST_TABS = 14


class _Row(NamedTuple):
    """One benchmark and metric: the newest series of each host."""

    name: str
    metric: str
    by_host: Mapping[str, SummarySeries]
    others: int  # further settings


def benchmarks(archive: Archive, asked: Asked) -> str:
    metric, text, offset = asked.word("metric"), asked.word("text"), asked.number("from")
    machine = asked.word("machine") or None
    pattern = f"*{text}*" if text and not set(text) & set("*?[") else text or None
    listed = _listed(archive, metric, pattern, machine, offset)
    shown = _whole_benchmarks(listed)
    courses = recent_values(archive.store, [series.id for series in shown], _POINTS) if shown else {}
    names = metric_names(archive.store)
    tabs = [("each benchmark's own", asked.changed(metric=None, **{"from": None}), not metric)]
    chosen = names[:_MOST_TABS] + ([metric] if metric in names[_MOST_TABS:] else [])
    tabs += [(metric_label(name), asked.changed(metric=name, **{"from": None}), metric == name) for name in chosen]
    links = []
    if offset:
        links.append(("from the beginning", asked.changed(**{"from": None})))
    if len(shown) < len(listed):
        links.append(("more", asked.changed(**{"from": offset + len(shown)})))
    rows = _rows(shown)
    fields = [
        FormField("text", "Benchmark", text, hint="a part of its name, or a glob"),
        FormField("machine", "Machine", machine or "", hint="host or fingerprint"),
        FormField("metric", "Metric", metric, [("", "each benchmark's own"), *((n, metric_label(n)) for n in names)]),
    ]
    about = [
        f"The newest value on each machine, with its confidence interval, and the last {_POINTS} runs. A column is one machine; nothing is compared across."
    ]
    block = PageBlock(table=_table(rows, courses, asked), empty="Nothing was measured yet that fits.", links=links)
    return page(archive, asked, "Benchmarks", [block], about=about, fields=fields, tabs=tabs)


def _listed(
    archive: Archive, metric: str, pattern: str | None, machine: str | None, offset: int
) -> list[SummarySeries]:
    """The series of a page, and one more if there is one."""
    most = _AT_ONCE + 1
    if metric:
        where = SummaryFilter(metric=metric, benchmark=pattern, runs=RunFilter(machine=machine))
        return archive.store.series(where, limit=most, offset=offset)
    ids = headline_series(archive.store, benchmark=pattern, machine=machine, limit=most, offset=offset)
    return archive.store.series(SummaryFilter(series=tuple(ids))) if ids else []


def _whole_benchmarks(listed: Sequence[SummarySeries]) -> Sequence[SummarySeries]:
    """Without the last one, if more of it may follow."""
    if len(listed) <= _AT_ONCE:
        return listed
    whole = [series for series in listed if series.benchmark != listed[-1].benchmark]
    return whole or listed[:_AT_ONCE]


def _rows(found: Sequence[SummarySeries]) -> list[_Row]:
    groups: dict[tuple[object, ...], dict[str, list[SummarySeries]]] = {}
    for series in found:
        key = series.benchmark, series.metric, tuple(sorted(series.labels.items())), series.unit
        groups.setdefault(key, {}).setdefault(series.host, []).append(series)
    rows = []
    for hosts in groups.values():
        newest = {host: max(same, key=lambda s: s.points[-1].started_s) for host, same in hosts.items()}
        first = next(iter(newest.values()))
        name = metric_name(first.metric, first.labels)
        rows.append(_Row(first.benchmark, name, newest, sum(map(len, hosts.values())) - len(hosts)))
    return rows


def _table(rows: Sequence[_Row], courses: Mapping[str, Sequence[float]], asked: Asked) -> ReportTable:
    hosts = sorted({host for row in rows for host in row.by_host})
    fields: list[Field[_Row]] = [
        Field(Column("benchmark", quoted=True), lambda row: word(row.name)),
        Field(Column("metric"), lambda row: Cell(row.metric, small=_others(row))),
        *(Field(Column(host or "unknown", literal=True), _newest(host, courses, asked)) for host in hosts),
    ]
    return table_of(fields, rows)


def _others(row: _Row) -> str:
    return f"and {counted(row.others, 'other setting')}" if row.others else ""


def _newest(host: str, courses: Mapping[str, Sequence[float]], asked: Asked) -> Callable[[_Row], Cell]:
    def cell(row: _Row) -> Cell:
        series = row.by_host.get(host)
        if series is None:
            return Cell()
        point = series.points[-1]
        values = courses.get(series.id, ())
        return Cell(
            "no number" if point.value is None else format_value(point.value, short_unit(series.unit)),
            point.value,
            hint=point.doubt or f"{point.run}, {point.started}",
            address=asked.link("/history/", item=series.id),
            small=interval_words(series),
            drawing=spark_of(values, f"{len(values)} runs"),
        )

    return cell


def interval_words(series: SummarySeries) -> str:
    """Of its newest point."""
    point = series.points[-1]
    doubt = " ⚠" if point.doubt else ""
    if point.low is None or point.high is None or not point.value:
        return counted(point.launches, "launch", "launches") + doubt
    return f"± {percent((point.high - point.low) / 2 / abs(point.value))}{doubt}"

"""Sections of the report of a served model: percentiles with their intervals, and of a sweep the rates with their latencies."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from benchload.settings import parse_objective
from benchwright.analysis.statistics.request_series import PercentileInterval, percentile_interval
from benchwright.core.measurement import Measurement
from benchwright.core.run import Launch, Result
from benchwright.core.status import Status
from benchwright.kinds.requests.curve import Curve, CurveLine, drawn
from benchwright.kinds.requests.gather import CAPACITY, CLIENT, ENERGY, GOODPUT, LATENCIES, MET, OUTPUT, REQUESTS
from benchwright.report.base import Contribution, Report
from benchwright.report.document import Cell, Column, Field, ReportSection, ReportTable, table_of, word
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import format_value

_SHOWN = (50.0, 90.0, 99.0)
_NS = 1e-9
_TITLES = {"ttft": "time to first token", "tpot": "time per output token", "e2e": "whole request"}
Percentiles = Mapping[float, PercentileInterval | None]


def contribution(report: Report, kind: str) -> Contribution:
    """Of every result of `kind` whose program was our client."""
    sections, bodies, headline = [], {}, {}
    for number, result in enumerate(report.run.results):
        told = [launch for launch in result.launches if _facts(launch)]
        if not told or result.benchmark.kind != kind:
            continue
        found = {
            m.metric: m
            for launch in result.counted[-1:]
            for m in launch.measurements
            if m.source == CLIENT or m.metric == ENERGY
        }
        tables = [_percentiles(result), *_sweep(told), *_course(told[-1])]
        if any(tables):
            words = (str(_facts(told[-1]).get("load", "")), *(() if result.counted else ("does not count",)))
            sections.append(
                ReportSection(heading=(result.benchmark.name, *words), tables=tuple(t for t in tables if t is not None))
            )
        bodies[number] = {"endpoint": _body(result, told)}
        known = [CAPACITY] if CAPACITY in found else [*LATENCIES, OUTPUT, REQUESTS, GOODPUT, MET, ENERGY]
        headline[number] = tuple(m for m in known if m in found)
    shown = frozenset(f"{metric}.p99" for metric in LATENCIES)
    title = "Serving" if sections else ""
    return Contribution(title=title, sections=tuple(sections), headline=headline, bodies=bodies, shown_metrics=shown)


def _facts(launch: Launch) -> Mapping[str, Any]:
    found = launch.facts.get("endpoint")
    return found if isinstance(found, dict) else {}


def _pooled(result: Result) -> dict[str, tuple[Measurement, Percentiles]]:
    """By metric: of all launches that count, one after the other; if none does, of interrupted ones."""
    series: dict[str, list[Measurement]] = {}
    for launch in result.counted or [x for x in result.launches if x.status is Status.INTERRUPTED]:
        for m in launch.measurements:
            if m.metric in LATENCIES and m.source == CLIENT:
                series.setdefault(m.metric, []).append(m)
    found: dict[str, tuple[Measurement, Percentiles]] = {}
    for metric, same in series.items():
        values = [v for m in same for v in m.samples]
        found[metric] = (replace(same[0], samples=values), {p: percentile_interval(values, p) for p in _SHOWN})
    return found


def _body(result: Result, told: Sequence[Launch]) -> dict[str, object]:
    percentiles = {
        metric: {f"p{p:g}": None if i is None else i._asdict() for p, i in found.items()}
        for metric, (_, found) in _pooled(result).items()
    }
    return {"percentiles": percentiles, "launches": [_facts(launch) for launch in told]}


def _percentiles(result: Result) -> ReportTable | None:
    pooled = _pooled(result)
    if not pooled:
        return None
    fields: list[Field[str]] = [
        Field(Column("metric", "metric"), lambda metric: word(metric_name(metric, pooled[metric][0].labels))),
        Field(
            Column("samples", "samples", right=True),
            lambda m: Cell(f"{len(pooled[m][0].samples):,}", len(pooled[m][0].samples)),
        ),
    ]
    for percent in _SHOWN:
        fields.append(Field(Column(f"p{percent:g}", f"p{percent:g}"), partial(_percentile, pooled, percent)))
    note = "In brackets: 95 % confidence intervals from blocks of requests, which depend on each other; too few requests show none."
    return table_of(fields, pooled, title="latencies from the planned time of each request", notes=(note,))


def _percentile(pooled: Mapping[str, tuple[Measurement, Percentiles]], percent: float, metric: str) -> Cell:
    found = pooled[metric][1][percent]
    if found is None and percent == _SHOWN[0]:
        middle = statistics.median(pooled[metric][0].samples)
        return Cell(format_value(middle, "s"), middle)
    if found is None:
        return Cell("too few")
    low, high = (format_value(v, "s") for v in (found.low, found.high))
    return Cell(f"{format_value(found.value, 's')} [{low}, {high}]", found.value)


# -- sweeps ------------------------------------------------------------------------------------------------------------


def _sweep(told: Sequence[Launch]) -> list[ReportTable | None]:
    levels = [level for launch in told for level in _facts(launch).get("levels") or () if level.get("rate")]
    if not levels:
        return []
    levels.sort(key=lambda level: float(level["rate"]))
    fields: list[Field[Mapping[str, Any]]] = [
        Field(Column("rate", "rate", right=True), lambda x: Cell(f"{x['rate']:.4g}/s", x["rate"])),
        Field(Column("meets", "meets"), lambda x: Cell("yes" if x["meets"] else "no", bool(x["meets"]))),
        Field(Column("in time", "share", right=True), lambda x: Cell(f"{100 * x['share']:.0f} %", x["share"])),
    ]
    for name in _TITLES:
        for place, percent in enumerate(("p50", "p99")):
            column = Column(f"{name} {percent}", f"{name}_{percent}", right=True)
            fields.append(Field(column, partial(_of_level, name, place)))
    slo = str(_facts(told[-1]).get("slo"))
    table = table_of(fields, levels, title=f"rates against {slo}")
    return [table, *_curves(levels, slo, _knee(levels))]


def _of_level(name: str, place: int, level: Mapping[str, Any]) -> Cell:
    if level.get("overloaded"):
        return Cell("overloaded")
    value = (level.get(name) or (None, None))[place]
    return Cell() if value is None else Cell(format_value(value, "s"), value)


def _knee(levels: Sequence[Mapping[str, Any]]) -> float | None:
    """The rate at which p50 of whole requests lies furthest below the line from the first level to the last: beyond it waiting grows."""
    points = [(float(x["rate"]), float(x["e2e"][0])) for x in levels if x.get("e2e") and not x.get("overloaded")]
    if len(points) < 3 or points[-1][0] <= points[0][0] or points[-1][1] <= points[0][1]:
        return None
    (x0, y0), (x1, y1) = points[0], points[-1]
    below = [((x - x0) / (x1 - x0) - (y - y0) / (y1 - y0), x) for x, y in points]
    return max(below)[1] if max(below)[0] > 0 else None


def _curves(levels: Sequence[Mapping[str, Any]], slo: str, knee: float | None) -> list[ReportTable]:
    """Rate against p50 and p99, the objective drawn in."""
    limits, steady = dict(parse_objective(slo).limits), [x for x in levels if not x.get("overloaded")]
    made = []
    for name, title in _TITLES.items():
        lines = []
        for place, percent in enumerate(("p50", "p99")):
            points = [(float(x["rate"]), float(x[name][place])) for x in steady if x.get(name) and x[name][place]]
            lines.append(CurveLine(percent, points))
        if name in limits or name == "e2e":
            curve = Curve(lines, "requests/s", "s", limit=limits.get(name), mark=knee)
            made.append(drawn(f"{title} against the rate" + (f"; knee at {knee:.3g}/s" if knee else ""), curve))
    return [table for table in made if table is not None]


def _course(launch: Launch) -> list[ReportTable]:
    """How many requests ran and waited in the server, over time."""
    course = [row for row in _facts(launch).get("course") or () if row[1] is not None or row[2] is not None]
    if len(course) < 3:
        return []
    began = course[0][0]
    lines = [
        CurveLine(name, [((row[0] - began) * _NS, float(row[place])) for row in course if row[place] is not None])
        for place, name in ((1, "running"), (2, "waiting"))
    ]
    table = drawn("requests in the server over time", Curve(lines, "s", "", logarithmic=False))
    return [] if table is None else [table]

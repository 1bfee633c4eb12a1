"""Report of a specification: operators, outputs against golden ones, and the statistics its tests ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from benchwright.core.run import Result
from benchwright.core.status import Status
from benchwright.core.summary import Summary
from benchwright.kinds.spec.models import is_on_runtimes, model_kind
from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.series import OF_OP, OP, OP_TIME
from benchwright.kinds.spec.results import power
from benchwright.kinds.spec.results.statistics import statistics_of
from benchwright.kinds.spec.spec_test import ERROR, POWER, SpecTest, spec_of
from benchwright.report.base import Contribution, Report, joined
from benchwright.report.document import Cell, Column, Field, ReportSection, ReportTable, table_of, word
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import format_value, share_words

_FEW_OPERATORS = 10
_ERRORS = {
    "max_abs": "max abs",
    "relative_l2": "relative L2",
    "cosine": "cosine",
    "top1": "same top 1",
    "top5": "same top 5",
}


def contribution(report: Report) -> Contribution:
    """`report`: of the same run, without the kinds' parts. Models on our runtimes are shown as model files are."""
    ours, benchmarks = _of_tests(report), [r.benchmark for r in report.run.results]
    if not any(map(is_on_runtimes, benchmarks)):
        return ours
    if all(b.kind == "spec" or not is_on_runtimes(b) for b in benchmarks):
        models = model_kind().report(report)
    else:
        models = Contribution()  # another kind of this run shows them all
    bodies = {n: {**models.bodies.get(n, {}), **ours.bodies.get(n, {})} for n in {**models.bodies, **ours.bodies}}
    headline = {n: names for n, names in ours.headline.items() if not is_on_runtimes(benchmarks[n])}
    ours = msgspec.structs.replace(ours, headline=headline, bodies={})
    return msgspec.structs.replace(joined([models, ours]), bodies=bodies)


def _of_tests(report: Report) -> Contribution:
    tests = {n: (r, test) for n, r in enumerate(report.run.results) if (test := spec_of(r.benchmark)) is not None}
    sections, bodies = [], {}
    for number, (result, test) in tests.items():
        summaries = report.summaries.get(result.benchmark.name, ())
        headline = (LATENCY,) if is_on_runtimes(result.benchmark) else _headline(test, summaries)
        statistics = statistics_of(result, test.statistics, headline) if test.statistics else {}
        operators = None if is_on_runtimes(result.benchmark) else _operators(result, summaries)
        tables = [operators, _goldens(result), _statistics(statistics, summaries)]
        if any(tables):
            sections.append(
                ReportSection(heading=(result.benchmark.name,), tables=tuple(t for t in tables if t is not None))
            )
        bodies[number] = {"spec": _body(test), **({"statistics": statistics} if statistics else {})}
    return Contribution(
        title="Tests" if sections else "",
        sections=tuple(sections),
        shown_metrics=frozenset({OP_TIME}),
        headline={
            n: _headline(test, report.summaries.get(result.benchmark.name, ())) for n, (result, test) in tests.items()
        },
        bodies=bodies,
    )


def _headline(test: SpecTest, summaries: Sequence[Summary]) -> tuple[str, ...]:
    """The metrics that matter to the test; the program's duration only if it printed nothing about the whole model."""
    if test.metric == POWER:
        wanted = [power.POWER, power.ENERGY]
    elif test.metric == ERROR:
        wanted = [s.metric for s in summaries if s.metric.startswith("error.")]
    else:
        wanted = [s.metric for s in summaries if s.source == "log" and not s.metric.startswith(OF_OP)]
        if LATENCY in wanted:
            wanted = [name for name in wanted if not name.startswith(f"{LATENCY}.")]
    known = {s.metric for s in summaries}
    found = tuple(dict.fromkeys(name for name in wanted if name in known))
    return found or ("process.duration",)


def _body(test: SpecTest) -> dict[str, object]:
    named = ("path", "line", "model", "identifier", "metric", "framework", "group", "iterations", "warmup", "backend")
    body = msgspec.to_builtins(test)
    return {name: body[name] for name in named if body.get(name) is not None}


class _Operator(msgspec.Struct, frozen=True):
    op: str
    seconds: float
    share: float | None


def _operators(result: Result, summaries: Sequence[Summary]) -> ReportTable | None:
    """Where the time goes, the slowest first."""
    if result.status is not Status.OK:
        return None
    found = sorted((s for s in summaries if s.metric == OP_TIME), key=lambda s: -s.value)
    if not found:
        return None
    total = math.fsum(s.value for s in found)
    rows = [_Operator(s.labels.get(OP, ""), s.value, s.value / total if total > 0 else None) for s in found]
    fields: list[Field[_Operator]] = [
        Field(Column("operator", "op", quoted=True), lambda o: word(o.op)),
        Field(Column("time", "seconds", right=True), lambda o: Cell(format_value(o.seconds, "s"), o.seconds)),
        Field(Column("share", "share", right=True), lambda o: _share(o.share)),
    ]
    table = table_of(fields, rows, title="where the time goes")
    if len(rows) <= _FEW_OPERATORS + 1:
        return table
    others = rows[_FEW_OPERATORS:]
    share = math.fsum(o.share for o in others if o.share is not None)
    rest = _Operator(f"{len(others)} others ('bw show')", math.fsum(o.seconds for o in others), share)
    return msgspec.structs.replace(table, most=_FEW_OPERATORS, rest=table_of(fields, [rest]).rows[0])


def _share(share: float | None) -> Cell:
    return Cell() if share is None else Cell(share_words(share), share, share=share)


def _goldens(result: Result) -> ReportTable | None:
    """Each output of the last launch that has some against its golden."""
    found: dict[str, Mapping[str, object]] = {}
    for launch in result.launches:
        compared = launch.facts.get("goldens")
        if isinstance(compared, dict):
            found |= compared
    if not found:
        return None
    fields: list[Field[str]] = [Field(Column("output", "output", quoted=True), word)]
    for name, title in _ERRORS.items():
        fields.append(Field(Column(title, name, right=True), partial(_figure, found, name)))
    fields.append(Field(Column("furthest off", "worst"), lambda output: _worst(found[output].get("worst"))))
    return table_of(fields, found, title="outputs against golden ones")


def _figure(compared: Mapping[str, Mapping[str, object]], name: str, output: str) -> Cell:
    figures = compared[output].get("figures")
    value = figures.get(name) if isinstance(figures, dict) else None
    return Cell(f"{value:.4g}", value) if isinstance(value, int | float) else Cell()


def _worst(worst: object) -> Cell:
    if not isinstance(worst, dict):
        return Cell()
    place = ", ".join(map(str, worst.get("index", ())))
    got, expected = worst.get("got"), worst.get("expected")
    digits = next((n for n in (6, 9, 12, 17) if f"{got:.{n}g}" != f"{expected:.{n}g}"), 6)
    return Cell(f"[{place}]: {got:.{digits}g} instead of {expected:.{digits}g}", worst)


def _statistics(statistics: Mapping[str, Mapping[str, float]], summaries: Sequence[Summary]) -> ReportTable | None:
    """A row for each metric."""
    if not statistics:
        return None
    units = {s.metric: s.unit for s in summaries}
    names = list(dict.fromkeys(name for each in statistics.values() for name in each))
    fields: list[Field[str]] = [Field(Column("metric", "metric"), lambda metric: word(metric_name(metric, {})))]
    for name in names:
        fields.append(Field(Column(name, name, right=True), partial(_statistic, statistics, units, name)))
    return table_of(fields, statistics, title="statistics of samples")


def _statistic(
    statistics: Mapping[str, Mapping[str, float]], units: Mapping[str, str | None], name: str, metric: str
) -> Cell:
    value = statistics[metric].get(name)
    return Cell() if value is None else Cell(format_value(value, None if name == "cv" else units.get(metric)), value)

"""Throughput against latency of a model under growing load: threads, concurrent callers, batch sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.summary import Summary
from benchwright.kinds.models.batches import NAMES as BATCH_SIZES
from benchwright.kinds.models.report.rows import ModelRow
from benchwright.kinds.requests.curve import Curve, CurveLine, drawn
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.text.numbers import format_value

LOADS = ("threads", "streams", *BATCH_SIZES)
_KNEE = "the most throughput for its latency; further load adds more waiting than work"
_SLOW = 99.0


class LoadPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One load: `rate` of all callers together, `latency` as one of them sees it."""

    load: str
    rate: Summary
    latency: Summary

    @property
    def power(self) -> float:
        """Throughput over latency, which is largest at the knee (Kleinrock's power)."""
        return self.rate.value / self.latency.value if self.latency.value > 0 else 0.0

    @property
    def slow(self) -> float | None:
        return next((p.value for p in self.latency.percentiles if p.percent == _SLOW), None)


def load_curves(rows: Sequence[ModelRow]) -> Iterable[ReportTable]:
    """A table for each runtime, device and precision that was measured under several loads, with its knee."""
    curves: dict[tuple[str, str, str], list[LoadPoint]] = {}
    for row in rows:
        point = _point(row)
        if point is not None:
            model, parameters = row.model, row.result.benchmark.parameters
            others = " ".join(f"{name}={value}" for name, value in parameters.items() if name not in LOADS)
            way = " ".join(
                filter(None, (model.runtime, _unless(model.device, "cpu"), _unless(model.precision, "fp32")))
            )
            curves.setdefault((way, others, point.rate.unit or ""), []).append(point)
    for (way, others, _), points in curves.items():
        if len(points) > 1:
            what = f"{way} {others}".rstrip()
            yield _table(f"throughput against latency: {what}", points)
            if (curve := drawn(f"latency over throughput: {what}", _curve(points))) is not None:
                yield curve


def knee(points: Sequence[LoadPoint]) -> LoadPoint:
    """The point with the most throughput for its latency."""
    return max(points, key=lambda point: point.power)


def _curve(points: Sequence[LoadPoint]) -> Curve:
    """Latency over throughput, from one load to the next."""
    best = knee(points)
    slow = [(point.rate.value, point.slow) for point in points if point.slow is not None]
    lines = [CurveLine("p50", [(p.rate.value, p.latency.value) for p in points])]
    lines += [CurveLine("p99", slow)] if len(slow) > 1 else []
    return Curve(lines, best.rate.unit or "", "s", mark=best.rate.value)


def _table(title: str, points: Sequence[LoadPoint]) -> ReportTable:
    best = knee(points)
    unit = best.rate.unit or ""
    fields: list[Field[LoadPoint]] = [
        Field(Column("load"), lambda p: word(p.load)),
        Field(Column(unit, right=True), lambda p: Cell(format_value(p.rate.value, ""), p.rate.value)),
        Field(Column("latency p50", right=True), lambda p: Cell(format_value(p.latency.value, "s"), p.latency.value)),
        Field(
            Column("p99", right=True),
            lambda p: Cell("" if p.slow is None else format_value(p.slow, "s"), p.slow),
        ),
        Field(Column("knee", hint=_KNEE), lambda p: word("←" if p is best else "")),
    ]
    return table_of(fields, points, title=title)


def _point(row: ModelRow) -> LoadPoint | None:
    loads = [
        f"{name}={row.result.benchmark.parameters[name]}" for name in LOADS if name in row.result.benchmark.parameters
    ]
    concurrent = row.model.streams > 1
    rate = row.figure("throughput.streams" if concurrent else "rate")
    latency = row.figure("latency.streams" if concurrent else "latency")
    if not loads or rate is None or latency is None:
        return None
    return LoadPoint(load=" ".join(loads), rate=rate, latency=latency)


def _unless(text: str, usual: str) -> str:
    return "" if text == usual else text

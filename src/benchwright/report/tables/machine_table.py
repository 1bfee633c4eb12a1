"""Machines side by side: benchmarks × machines, as ratios to one of them. No verdict: machines differ in more than speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from benchwright.core.metric import Direction
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import format_number, format_value, short_unit

_HOUR_S = 3600.0


class MachineFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The newest value of one metric on one host. `joules`: of an item or a call, if that was measured."""

    benchmark: str
    metric: str
    labels: dict[str, str]
    unit: str | None
    direction: Direction
    host: str
    value: float
    low: float | None = None
    high: float | None = None
    setting: dict[str, str] = {}
    doubt: str | None = None
    joules: float | None = None


class RatioRow(NamedTuple):
    benchmark: str
    metric: str
    figures: Mapping[str, MachineFigure]


class MachineRatios(NamedTuple):
    """`base`: the host that the others are compared with. `prices`: of a host's hour."""

    base: str
    hosts: tuple[str, ...]
    rows: tuple[RatioRow, ...]
    prices: Mapping[str, float]


def machine_ratios(
    figures: Sequence[MachineFigure], base: str | None, prices: Mapping[str, float] | None = None
) -> MachineRatios:
    """`base` None or unknown: the host that measured most."""
    measured = Counter(figure.host for figure in figures)
    most = min(measured, key=lambda host: (-measured[host], host), default="")
    chosen = base if base and base in measured else most
    hosts = (chosen, *sorted(host for host in measured if host != chosen)) if chosen else ()
    rows: dict[tuple[object, ...], dict[str, MachineFigure]] = {}
    for figure in figures:
        key = figure.benchmark, figure.metric, tuple(sorted(figure.labels.items())), figure.unit
        rows.setdefault(key, {})[figure.host] = figure
    made = (
        RatioRow(first.benchmark, metric_name(first.metric, first.labels), row)
        for row in rows.values()
        for first in [next(iter(row.values()))]
    )
    return MachineRatios(chosen, hosts, tuple(row for row in made if chosen in row.figures), prices or {})


def ratio(figure: MachineFigure, base: MachineFigure) -> tuple[float, float | None, float | None] | None:
    """How many times better than the base, and from where to where it may lie: the ends of both confidence intervals, put
    against each other. Of a metric that has no better or worse, how many times as large."""
    over, under = (figure, base) if figure.direction is not Direction.LOWER else (base, figure)
    if over.value <= 0 or under.value <= 0:
        return None
    middle = over.value / under.value
    if over.low is None or over.high is None or under.low is None or under.high is None:
        return middle, None, None
    if over.low <= 0 or under.low <= 0:
        return middle, None, None
    return middle, over.low / under.high, over.high / under.low


def ratio_table(made: MachineRatios) -> ReportTable:
    fields: list[Field[RatioRow]] = [
        Field(Column("benchmark", "benchmark", quoted=True), lambda row: word(row.benchmark)),
        Field(Column("metric", "metric"), lambda row: word(row.metric)),
    ]
    for host in made.hosts:
        fields += _of_host(host, made)
    notes = [
        "In brackets: where the ratio lies if both values lie in their 95 % confidence intervals; without brackets, one of them has no interval.",
        "⚠ measured with other settings than on the machine compared with, or in doubt: the tip says what.",
    ]
    return table_of(fields, made.rows, notes=tuple(notes))


def _of_host(host: str, made: MachineRatios) -> list[Field[RatioRow]]:
    def end(number: int) -> Callable[[RatioRow], Cell]:
        return lambda row: Cell(value=None if (found := _ratio(row, host, made)) is None else found[number])

    shown = Column(host or "unknown", host, right=True, literal=True)
    return [
        Field(shown, lambda row: _cell(row, host, made)),
        Field(Column("", f"{host} low"), end(1)),
        Field(Column("", f"{host} high"), end(2)),
        Field(Column("", f"{host} value"), lambda row: Cell(value=getattr(row.figures.get(host), "value", None))),
    ]


def _ratio(row: RatioRow, host: str, made: MachineRatios) -> tuple[float, float | None, float | None] | None:
    return None if host not in row.figures else ratio(row.figures[host], row.figures[made.base])


def _cell(row: RatioRow, host: str, made: MachineRatios) -> Cell:
    figure = row.figures.get(host)
    if figure is None:
        return Cell()
    base = row.figures[made.base]
    found = ratio(figure, base)
    text = "no ratio" if found is None else f"{found[0]:.2f}×"
    if found is not None and found[1] is not None and host != made.base:
        text += f" [{found[1]:.2f}, {found[2]:.2f}]"
    why = _doubts(figure, base)
    small = [format_value(figure.value, short_unit(figure.unit))]
    small += [f"{format_value(figure.joules, None)} J/item"] if figure.joules is not None else []
    small += [price] if (price := price_words(figure, made.prices.get(host))) else []
    return Cell(
        text + (" ⚠" if why else ""),
        None if found is None else found[0],
        hint="; ".join(why) or None,
        small=" · ".join(small),
    )


def _doubts(figure: MachineFigure, base: MachineFigure) -> list[str]:
    other = [
        f"{key}: {base.setting.get(key, 'not set')} → {figure.setting.get(key, 'not set')}"
        for key in dict.fromkeys((*base.setting, *figure.setting))
        if base.setting.get(key) != figure.setting.get(key)
    ]
    return [*other, *([figure.doubt] if figure.doubt else [])]


def price_words(figure: MachineFigure, per_hour: float | None) -> str:
    """`0.0021 per 1,000 items` of a rate; of a time, the price of one such time. Empty where neither is known."""
    if per_hour is None or figure.value <= 0:
        return ""
    unit = figure.unit or ""
    if unit.endswith("/s"):
        return f"price {format_number(per_hour / _HOUR_S / figure.value * 1000)} per 1,000 {unit.removesuffix('/s')}"
    return f"price {format_number(per_hour / _HOUR_S * figure.value)}" if unit == "s" else ""

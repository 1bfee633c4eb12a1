"""The newest figures of each machine, to be put side by side."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.report.tables.machine_table import MachineFigure
from benchwright.store.base import RunStore, SummaryFilter, SummarySeries

_ENERGY = ("energy.item", "energy.call")


def latest_by_machine(
    store: RunStore, *, metric: str | None = None, benchmark: str | None = None, headline: Sequence[str] | None = None
) -> list[MachineFigure]:
    """Of each benchmark and host the newest value: of `metric` or, without it, of what the benchmark is known by.
    `headline`: the ids of those series, where they are known already."""
    where = SummaryFilter(benchmark=benchmark, metric=metric, series=tuple(headline or ()))
    if metric is not None or headline:
        every = [*store.series(where), *(s for name in _ENERGY for s in store.series(SummaryFilter(metric=name)))]
    else:
        every = store.series(where)
    found = [each for each in every if (each.points[-1].headline if metric is None else each.metric == metric)]
    energy: dict[tuple[str, str], SummarySeries] = {}
    for each in every:
        key = each.benchmark, each.host
        if each.metric in _ENERGY and (key not in energy or _started(energy[key]) < _started(each)):
            energy[key] = each
    newest: dict[tuple[object, ...], SummarySeries] = {}
    for series in found:
        labels = tuple(sorted(series.labels.items()))
        place = (series.benchmark, series.metric, labels, series.unit, series.host)
        if series.points[-1].value is None:
            continue
        if place not in newest or _started(newest[place]) < _started(series):
            newest[place] = series
    return [_figure(series, energy.get((series.benchmark, series.host))) for series in newest.values()]


def _started(series: SummarySeries) -> float:
    return series.points[-1].started_s


def _figure(series: SummarySeries, energy: SummarySeries | None) -> MachineFigure:
    point = series.points[-1]
    assert point.value is not None
    names = ("benchmark", "metric", "labels", "unit", "direction", "host", "setting")
    return MachineFigure(
        **{name: getattr(series, name) for name in names},
        value=point.value,
        low=point.low,
        high=point.high,
        doubt=point.doubt,
        joules=None if energy is None else energy.points[-1].value,
    )

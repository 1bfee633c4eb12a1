"""The newest figures of each machine, to be put side by side."""

from __future__ import annotations

from benchwright.report.tables.machine_table import MachineFigure
from benchwright.store.base import RunFilter, RunStore, SummaryFilter, SummarySeries

_ENERGY = ("energy.item", "energy.call")


def latest_by_machine(
    store: RunStore, *, metric: str | None = None, benchmark: str | None = None, since: str | None = None
) -> list[MachineFigure]:
    """Of each benchmark and host the newest value: of `metric` or, without it, of what the benchmark is known by."""
    runs = RunFilter(since=since)
    found = store.series(SummaryFilter(metric=metric, headline=metric is None, benchmark=benchmark, runs=runs))
    energy: dict[tuple[str, str], SummarySeries] = {}
    for name in _ENERGY:
        for each in store.series(SummaryFilter(metric=name, benchmark=benchmark, runs=runs)):
            key = each.benchmark, each.host
            if key not in energy or energy[key].points[-1].started_s < each.points[-1].started_s:
                energy[key] = each
    newest: dict[tuple[object, ...], SummarySeries] = {}
    for series in found:
        labels = tuple(sorted(series.labels.items()))
        where = (series.benchmark, series.metric, labels, series.unit, series.host)
        if series.points[-1].value is None:
            continue
        if where not in newest or newest[where].points[-1].started_s < series.points[-1].started_s:
            newest[where] = series
    return [_figure(series, energy.get((series.benchmark, series.host))) for series in newest.values()]


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

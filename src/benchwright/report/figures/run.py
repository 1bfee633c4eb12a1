"""The picture of a run: each benchmark compared with its peak or its baseline, else on a common axis or around its own median.

Only comparable values share an axis: throughputs of a suite's benchmarks are in different units, so each is drawn around
its own median, and the picture shows how much launches differ.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from benchwright.core.comparison import Comparison, Effect
from benchwright.core.efficiency import Efficiency
from benchwright.core.run import Result
from benchwright.core.status import Status
from benchwright.core.summary import Summary
from benchwright.report.base import Report
from benchwright.report.document import Figure, FigureRow
from benchwright.report.figures.axis import log_ticks, reach, ticks, wants_logarithm
from benchwright.report.tables.comparison import MARKS, change, metric_words, sorted_effects
from benchwright.report.tables.results import spread_cell
from benchwright.report.text.metrics import efficiency_words, metric_name
from benchwright.report.text.numbers import format_number, format_value, percent, share_words, short_unit
from benchwright.report.text.one_line import titled

_LEAST_SPREAD = 0.02  # the axis is at least as wide, so that quiet launches look quiet
_FARTHEST = 1.0  # from a median: what is farther lies at the end of the axis
_NAME_ENDS = re.compile(r"(?=[\[@])|(?<=/)|(?<=::)")
_LONG_NAME = 24
_MOST_PERCENT = 300.0  # of a change
_PAIRS_FARTHEST = 2.5  # times as far as the farthest interval
_MOST_SEVERE = 2  # differences between the runs; the comparison lists all


def run_picture(report: Report) -> Figure | None:
    """None where nothing was measured."""
    first = {n: next(iter(report.headline(n)), None) for n in range(len(report.run.results))}
    drawn = {n: s for n, s in first.items() if s is not None and math.isfinite(s.value)}
    if not drawn:
        return None
    if report.against is not None and report.against.effects:
        return _against(report, report.against, drawn)
    shares = {n: e for n in drawn if (e := _best_share(report, n)) is not None}
    if 2 * len(shares) > len(drawn):
        return _of_peak(report, drawn, shares)
    alike = len({(s.metric, s.unit) for s in drawn.values()}) == 1
    return _on_one_axis(report, drawn) if alike and report.score is None else _around_medians(report, drawn)


def comparison_picture(
    comparison: Comparison,
    title: str = "",
    links: Mapping[str, str] = {},
    effects: Sequence[Effect] | None = None,
) -> Figure | None:
    """`effects`, or all, with their intervals and pairs; None if there is none. `links`: benchmark → place of the page."""
    title = title or f"{comparison.treatment} compared with {comparison.control}"
    return _effects(comparison, sorted_effects(comparison.effects) if effects is None else effects, title, links)


def _rows(report: Report, figures: dict[int, FigureRow]) -> tuple[FigureRow, ...]:
    """Every benchmark of the run: one without a figure says why."""
    return tuple(figures.get(n) or _without(n, r) for n, r in enumerate(report.run.results))


def _without(number: int, result: Result) -> FigureRow:
    ended = result.status is Status.OK
    reason = result.reason.value.replace("_", " ") if result.reason else "nothing measured"
    words = reason if ended else f"{result.status.value}: {reason}" if result.reason else result.status.value
    return FigureRow(name=result.benchmark.name, text=words, link=f"b{number}", mark=result.status.value)


def _row(report: Report, number: int, summary: Summary, scale: float, text: str, small: str = "") -> FigureRow:
    """The launches and the interval of a metric, all multiplied by `scale`."""
    interval = summary.interval
    result = report.run.results[number]
    return FigureRow(
        name=result.benchmark.name,
        value=summary.value * scale,
        low=None if interval is None else interval.low * scale,
        high=None if interval is None else interval.high * scale,
        dots=tuple(v * scale for v in summary.values if math.isfinite(v)),
        text=text,
        small=small,
        link=f"b{number}",
        mark="" if result.status is Status.OK else result.status.value,
    )


def _legend(rows: Sequence[FigureRow]) -> str:
    """The meaning of the marks of rows with launches."""
    words = "Dots are launches, the upright line is their median"
    if any(row.low is not None for row in rows):
        return f"{words}, the thick line its 95 % confidence interval"
    return words + ("; 6 launches or more give a confidence interval" if any(row.dots for row in rows) else "")


def _shortened(rows: tuple[FigureRow, ...]) -> tuple[str, tuple[FigureRow, ...]]:
    """The common beginning of all names, if they are long, and the rows without it."""
    names = [row.name for row in rows]
    prefix = os.path.commonprefix(names)  # noqa: RUF071 (names, not paths)
    cut = max((m.start() for m in _NAME_ENDS.finditer(prefix)), default=0)
    if len(set(names)) < 2 or not cut or max(map(len, names)) < _LONG_NAME:
        return "", rows
    return prefix[:cut], tuple(replace(row, name=row.name[cut:] or row.name) for row in rows)


def _reached(rows: Sequence[FigureRow]) -> list[float]:
    return [v for row in rows for v in (*row.dots, row.value, row.low, row.high) if v is not None]


def _best_share(report: Report, number: int) -> Efficiency | None:
    """Of what a benchmark uses most of: arithmetic or bandwidth."""
    name = report.run.results[number].benchmark.name
    known = [e for e in report.efficiency.get(name, ()) if e.share is not None]
    return max(known, key=lambda e: e.share or 0.0, default=None)


def _of_peak(report: Report, drawn: dict[int, Summary], shares: dict[int, Efficiency]) -> Figure:
    figures = {}
    for number, summary in drawn.items():
        name = report.run.results[number].benchmark.name
        e = shares.get(number)
        if e is None:
            words = next((x.why_no_share for x in report.efficiency.get(name, ()) if x.why_no_share), "work unknown")
            figures[number] = FigureRow(name=name, text="no share", small=words or "", link=f"b{number}")
            continue
        share = e.share or 0.0
        itself = e.peak is not None and e.peak.benchmark == name and e.peak.run is None
        small = "the peak itself" if itself else efficiency_words(e).partition(",")[0]
        is_rate = summary.value > 0 and summary.metric.endswith("rate")
        scale = share / summary.value if is_rate else math.nan
        row = _row(report, number, summary, scale, share_words(share), small)
        # A metric that is no rate says nothing about how the share differs between launches.
        plain = FigureRow(name=name, value=share, text=row.text, small=small, link=row.link, mark=row.mark)
        figures[number] = row if is_rate else plain
    rows = _rows(report, figures)
    high = max(1.0, *(v for v in _reached(rows) if v <= 1.2))
    peaks = dict.fromkeys(f"{e.peak.benchmark}" for e in shares.values() if e.peak is not None)
    return Figure(
        title="Share of this machine's measured peak",
        axis=f"% of what {' and '.join(peaks)} sustained here",
        rows=rows,
        low=0.0,
        high=high,
        ticks=ticks(0.0, high, lambda v: f"{v * 100:.0f} %"),
        bars=True,
        line=1.0,
        notes=(f"{_legend(rows)}. The peak was measured on this machine; it is not from a data sheet.",),
    )


def _against(report: Report, comparison: Comparison, drawn: dict[int, Summary]) -> Figure | None:
    """The metric that each benchmark is known by, or all if none of those was compared."""
    known = {(report.run.results[n].benchmark.name, s.metric) for n, s in drawn.items()}
    chosen = [e for e in comparison.effects if (e.benchmark, e.metric) in known] or list(comparison.effects)
    compared = {e.benchmark for e in chosen}
    names = {n: report.run.results[n].benchmark.name for n in drawn}
    others = [FigureRow(name=x, text="not compared", link=f"b{n}") for n, x in names.items() if x not in compared]
    figure = _effects(comparison, chosen, f"Compared with {comparison.control}")
    return None if figure is None else replace(figure, rows=(*figure.rows, *others))


def _effects(
    comparison: Comparison, effects: Sequence[Effect], title: str, links: Mapping[str, str] = {}
) -> Figure | None:
    if not effects:
        return None
    rows = tuple(
        FigureRow(
            name=f"{e.benchmark} {metric_words(e)}".strip(),
            value=(e.ratio - 1) * 100 if math.isfinite(e.ratio) else None,
            low=None if e.interval is None else (e.interval.low - 1) * 100,
            high=None if e.interval is None else (e.interval.high - 1) * 100,
            dots=tuple((pair - 1) * 100 for pair in e.pairs),
            text=change(e),
            small=f"{MARKS[e.verdict]} {e.verdict.value}{' ⚠' if e.doubts else ''}",
            link=links.get(e.benchmark, ""),
            mark=e.verdict.value,
        )
        for e in effects
    )
    margin = comparison.margin * 100
    reached = [v for row in rows for v in (row.value, row.low, row.high) if v is not None and math.isfinite(v)]
    near = _PAIRS_FARTHEST * max([3 * margin, *map(abs, reached)])  # a few far pairs do not shrink all others
    reached += [dot for row in rows for dot in row.dots if abs(dot) <= near]
    farthest = min(max([3 * margin, *map(abs, reached)]) * 1.05, _MOST_PERCENT)
    severe = [f"⚠ {d.what} differs: {d.control} → {d.treatment}" for d in comparison.differences if d.severe]
    if len(severe) > _MOST_SEVERE:
        severe = [*severe[:_MOST_SEVERE], f"⚠ {len(severe) - _MOST_SEVERE} more such differences"]
    level = f"{comparison.confidence * 100:g} %"
    drawn = ["dots are pairs of launches"] if any(row.dots for row in rows) else []
    any_interval = any(row.low is not None for row in rows)
    drawn.append(f"lines are {level} confidence intervals" if any_interval else "no intervals: too few launches")
    about = f"{titled(', '.join(drawn))}; shaded: differences up to {margin:g} % count as the same."
    return Figure(
        title=title,
        axis="change in %",
        rows=rows,
        low=max(-farthest, -100.0),
        high=farthest,
        ticks=ticks(max(-farthest, -100.0), farthest, lambda v: f"{v:+g} %" if v else "0"),
        line=0.0,
        margin=(-margin, margin),
        notes=(about, *severe),
    )


def _on_one_axis(report: Report, drawn: dict[int, Summary]) -> Figure:
    figures = {}
    for number, s in drawn.items():
        figures[number] = _row(report, number, s, 1.0, format_value(s.value, short_unit(s.unit)), _spread(s))
    (prefix, rows), first = _shortened(_rows(report, figures)), next(iter(drawn.values()))
    values = _reached(rows)
    logarithmic = wants_logarithm([row.value for row in rows if row.value is not None]) and min(values) > 0
    bare = first.unit not in ("s", "B")

    def words(value: float) -> str:
        return format_number(value) if bare else format_value(value, first.unit)

    if logarithmic:
        low, high = min(values) / 1.1, max(values) * 1.1
        marks = log_ticks(low, high, words)
    else:
        low, high = reach(values, least=_LEAST_SPREAD * abs(first.value))
        low = max(low, 0.0) if min(values) >= 0 else low
        marks = ticks(low, high, None if bare else words)
    better = {"higher": ", higher is better", "lower": ", lower is better"}.get(first.direction.value, "")
    cut = "" if logarithmic or low <= 0 else "; the axis does not begin at 0"
    unit = f", {first.unit}" if first.unit and bare else ""
    return Figure(
        title=titled(f"{metric_name(first.metric, {})}{unit}{better}"),
        axis=", ".join(filter(None, (prefix, "logarithmic axis" if logarithmic else ""))),
        rows=rows,
        low=low,
        high=high,
        ticks=marks,
        logarithmic=logarithmic,
        notes=(f"{_legend(rows)}{cut}.",),
    )


def _around_medians(report: Report, drawn: dict[int, Summary]) -> Figure:
    figures = {}
    for number, s in drawn.items():
        text = format_value(s.value, short_unit(s.unit))
        if s.value:
            row = _row(report, number, s, 1 / s.value, text, _spread(s))
        else:
            row = FigureRow(name=report.run.results[number].benchmark.name, text=text, link=f"b{number}")
        figures[number] = row
    rows = _rows(report, figures)
    away = [abs(v - 1) for v in _reached(rows) if math.isfinite(v)]
    farthest = min(max([_LEAST_SPREAD, *away]) * 1.05, _FARTHEST)
    return Figure(
        title="How much launches differ",
        axis="difference from each benchmark's median",
        rows=rows,
        low=1 - farthest,
        high=1 + farthest,
        ticks=tuple((1 + v / 100, words) for v, words in _percents(farthest * 100)),
        line=1.0,
        notes=(f"{_legend(rows)}. Each is relative to its own median: there is no peak or baseline to compare with.",),
    )


def _percents(farthest: float) -> tuple[tuple[float, str], ...]:
    return ticks(-farthest, farthest, lambda v: f"{v:+g} %" if v else "median")


def _spread(summary: Summary) -> str:
    """`± 0.4 %`, or the range of too few launches."""
    if summary.launches < 2:
        return "1 launch"
    cell = spread_cell(summary)
    return cell.text if summary.interval is not None or summary.spread is None else f"range ± {percent(summary.spread)}"

"""`/history/SERIES`: one benchmark's metric on one host, run by run, with its changes.

Where the machine or a setting changed there is a marked line; changes are looked for between such lines, never across.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.core.comparison import Verdict
from benchwright.core.errors import InvalidInput
from benchwright.core.metric_history import BenchmarkHistory, HistoryChange
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.html.history_page import history_drawings
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_value, moment
from benchwright.server.change_book import KeptChange, history_of
from benchwright.server.pages.change_pages import change_table
from benchwright.server.pages.frame import Archive, Asked, PageBlock, page
from benchwright.store.base import SummaryFilter, SummaryPoint, SummarySeries

_MOST_POINTS = 1000
_MOST_SWITCHES = 24  # more: settings take turns, and each is shown by itself
_TABLE_ROWS = 30


class _Placed(NamedTuple):
    point: SummaryPoint
    series: SummarySeries


def series_page(archive: Archive, asked: Asked, series_id: str) -> str:
    first = next(iter(archive.store.series(SummaryFilter(series=(series_id,)))), None)
    if first is None:
        raise InvalidInput("there is no such series", where="history", remedy="choose one at /benchmarks")
    named = SummaryFilter(benchmark=_literal(first.benchmark), metric=first.metric)
    every = [each for each in archive.store.series(named) if _is_alike(each, first)]
    here = [each for each in every if each.host == first.host]
    found = archive.store.summaries(SummaryFilter(series=tuple(s.id for s in here)), most=_MOST_POINTS)
    placed = sorted(
        (_Placed(p, s) for s in found for p in s.points if p.value is not None), key=lambda x: x.point.started_s
    )
    marks = _switches(placed)
    alone = len(marks) > _MOST_SWITCHES
    if alone:
        placed, marks = [each for each in placed if each.series.id == first.id], []
    changes = archive.book.of_series([first.id] if alone else [s.id for s in here])
    history = _history(first, placed, changes)
    name = metric_name(first.metric, first.labels)
    blocks = [
        PageBlock(drawings=history_drawings(history, marks) if placed else (), about=_about(placed, marks, changes))
    ]
    blocks.append(PageBlock("Changes", table=change_table(changes, asked), empty="None beyond the noise."))
    if marks:
        blocks.append(
            PageBlock("What else changed", [f"{moment(placed[at].point.started)}: {text}" for at, text in marks])
        )
    blocks.append(_newest_runs(placed, asked))
    blocks.append(_others(first, every, asked, alone=alone))
    return page(
        archive,
        asked,
        f"{first.benchmark}: {name}",
        blocks,
        about=[f"on {first.host}{_unit_words(first)}", *([_setting_words(first)] if alone else [])],
        small_print="Each dot is a run; hollow ones were disturbed and decide nothing. Dotted lines: the machine or a setting changed there.",
    )


def _literal(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)


def _is_alike(series: SummarySeries, other: SummarySeries) -> bool:
    """The same thing measured, maybe elsewhere or with another setting."""
    names = ("benchmark", "labels", "unit", "source", "direction")
    return all(getattr(series, name) == getattr(other, name) for name in names)


def _switches(placed: Sequence[_Placed]) -> list[tuple[int, str]]:
    found = []
    for at in range(1, len(placed)):
        before, after = placed[at - 1].series, placed[at].series
        if before.id != after.id:
            found.append((at, _difference(before, after)))
    return found


def _difference(before: SummarySeries, after: SummarySeries) -> str:
    texts = [f"machine {before.machine} → {after.machine}"] if before.machine != after.machine else []
    for key in dict.fromkeys((*before.setting, *after.setting)):
        old, new = before.setting.get(key, "not set"), after.setting.get(key, "not set")
        texts += [f"{key} {old} → {new}"] if old != new else []
    return "; ".join(texts) or "the way it is measured"


def _history(first: SummarySeries, placed: Sequence[_Placed], changes: Sequence[KeptChange]) -> BenchmarkHistory:
    points = tuple(each.point for each in placed)
    made = history_of(replace(first, points=points))
    times = [point.started_s for point in points]
    return replace(made, changes=tuple(_drawn(kept, times) for kept in changes if times))


def _drawn(kept: KeptChange, times: Sequence[float]) -> HistoryChange:
    """Its places among the points that are shown."""
    first = min(bisect.bisect_left(times, kept.first_s), len(times) - 1)
    last = min(bisect.bisect_left(times, kept.last_s), len(times) - 1)
    facts = kept.facts
    return HistoryChange(
        place=first if facts.drifting else last,
        end=last,
        last_before=first,
        first_after=last,
        before=facts.before,
        after=facts.after,
        ratio=facts.ratio,
        confidence=facts.confidence,
        verdict=Verdict(kept.verdict),
        settled=facts.settled,
        drifting=facts.drifting,
    )


def _about(placed: Sequence[_Placed], marks: Sequence[object], changes: Sequence[object]) -> list[str]:
    doubtful = sum(each.point.doubt is not None for each in placed)
    words = [counted(len(placed), "point"), counted(len(changes), "change")]
    words += [f"{counted(len(marks), 'change')} of machine or setting"] if marks else []
    words += [f"{doubtful:,} disturbed: shown, but not counted"] if doubtful else []
    thinned = ["Thinned: of each stretch of runs the extremes are shown."] if len(placed) >= _MOST_POINTS - 2 else []
    return [f"{'; '.join(words)}.", *thinned]


def _newest_runs(placed: Sequence[_Placed], asked: Asked) -> PageBlock:
    return PageBlock("Latest runs", table=_run_table(list(reversed(placed[-_TABLE_ROWS:])), asked))


def _run_table(placed: Sequence[_Placed], asked: Asked) -> ReportTable:
    fields: list[Field[_Placed]] = [
        Field(Column("run", quoted=True), lambda x: word(x.point.run, address=asked.link("/runs/", item=x.point.uid))),
        Field(Column("started"), lambda x: word(moment(x.point.started))),
        Field(Column("value", right=True), lambda x: Cell(format_value(x.point.value or 0.0, x.series.unit))),
        Field(Column("95 % interval", right=True), lambda x: Cell(_interval(x))),
        Field(Column("launches", right=True), lambda x: Cell(f"{x.point.launches:,}")),
        Field(Column("revision"), lambda x: word(x.point.revision)),
        Field(Column("doubt"), lambda x: word(x.point.doubt or "")),
    ]
    return table_of(fields, placed)


def _interval(placed: _Placed) -> str:
    low, high, unit = placed.point.low, placed.point.high, placed.series.unit
    return "" if low is None or high is None else f"{format_value(low, unit)} to {format_value(high, unit)}"


def _others(first: SummarySeries, every: Sequence[SummarySeries], asked: Asked, *, alone: bool) -> PageBlock:
    links: dict[str, tuple[str, str]] = {}
    for each in every:
        if each.host != first.host:
            if each.host not in links:
                links[each.host] = (f"on {each.host}", asked.link("/history/", item=each.id))
        elif alone and each.id != first.id:
            links[each.id] = (_setting_words(each), asked.link("/history/", item=each.id))
    links[""] = ("machines side by side", asked.link("/machines/compare", metric=first.metric))
    return PageBlock("The same elsewhere", links=list(links.values()))


def _setting_words(series: SummarySeries) -> str:
    return ", ".join(f"{key} {value}" for key, value in series.setting.items()) or "without settings"


def _unit_words(series: SummarySeries) -> str:
    better = {"higher": ", higher is better", "lower": ", lower is better"}.get(series.direction.value, "")
    return (f", in {series.unit}" if series.unit else "") + better

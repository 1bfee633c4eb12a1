"""`benchwright history`: a benchmark's metric over all stored runs, and where it changed. Never across machines or settings."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from benchwright.analysis.change_points import change_points
from benchwright.core.comparison import Verdict
from benchwright.core.errors import InvalidInput, StoreTrouble, did_you_mean
from benchwright.core.metric import Direction
from benchwright.core.metric_history import BenchmarkHistory, HistoryChange, HistoryPoint
from benchwright.regress.notify.notice import Finding, Notice, NoticeVerdict, outcome_of
from benchwright.report.tables.history_table import change_words, heading, history_markdown, summary_words
from benchwright.results.kept_runs import Results
from benchwright.results.run_index import list_summaries
from benchwright.store.base import RunFilter, SummaryFilter, SummaryPoint, SummarySeries
from benchwright.store.summaries import COMMAND

_MOST_NAMES = 8
_RUNS_FOR_NAMES = 50  # the latest, where a name is looked for
_ANY = "another one in every run"


class HistoryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at. `by_commit`: in the order of the commits' times instead of the runs'. `any_host`: join machines of the same
    make. `limit`: only the newest runs."""

    benchmark: str
    metric: str | None = None
    labels: dict[str, str] = {}
    machine: str | None = None
    since: str | None = None
    limit: int | None = None
    by_commit: bool = False
    any_host: bool = False


class Histories(NamedTuple):
    """`unreadable`: runs that could not be read. `trouble`: why the store could not be used."""

    series: list[BenchmarkHistory]
    unreadable: list[str]
    trouble: StoreTrouble | None


class _Measured(NamedTuple):
    """One number of one run, and what it may be compared with."""

    series: tuple[object, ...]
    template: BenchmarkHistory
    point: SummaryPoint


def histories(results: Results, order: HistoryOrder) -> Histories:
    """A series for each benchmark, metric, machine and setting, with its changes; InvalidInput if there is none."""
    where = _filter(order)
    listed = list_summaries(results, where, limit=order.limit)
    if not listed.series and listed.trouble is not None:
        raise listed.trouble
    found: dict[tuple[object, ...], list[_Measured]] = {}
    for measured in _of_series(listed.series, order):
        found.setdefault(measured.series, []).append(measured)
    if not found:
        raise _nothing(order, results)
    for same in found.values():
        same.sort(key=lambda measured: measured.point.started_s)
    by_age = sorted(found.values(), key=lambda same: (same[0].point.started_s, same[0].point.uid, same[0].point.place))
    groups = _told_apart(_with_any_command(by_age))
    return Histories([_series(same, order) for same in groups], listed.unreadable, listed.trouble)


def _filter(order: HistoryOrder) -> SummaryFilter:
    runs = RunFilter(labels=order.labels, machine=order.machine, since=order.since)
    return SummaryFilter(benchmark=order.benchmark, metric=order.metric, headline=order.metric is None, runs=runs)


def _of_series(listed: Sequence[SummarySeries], order: HistoryOrder) -> Iterator[_Measured]:
    """Of a metric that a benchmark has several times, with other labels, the first."""
    first: dict[tuple[str, int], int] = {}
    for each in listed:
        for point in each.points:
            key = point.uid, point.result
            first[key] = min(point.place, first.get(key, point.place))
    for each in listed:
        template = BenchmarkHistory(
            benchmark=each.benchmark,
            metric=each.metric,
            labels=each.labels,
            unit=each.unit,
            direction=each.direction,
            machine=each.machine,
            host=each.host,
            setting=each.setting,
            points=(),
        )
        place = each.machine, "" if order.any_host else each.host
        what = each.benchmark, each.metric, each.unit, tuple(sorted(each.labels.items()))
        series = (*what, *place, tuple(sorted(each.setting.items())))
        for point in each.points:
            if point.value is not None and first[point.uid, point.result] == point.place:
                yield _Measured(series, template, point)


def _point(point: SummaryPoint) -> HistoryPoint:
    assert point.value is not None
    return HistoryPoint(
        run=point.run,
        uid=point.uid,
        started=point.started,
        value=point.value,
        revision=point.revision,
        commit=point.commit,
        commit_time=point.commit_time,
        doubt=point.doubt,
    )


def _with_any_command(groups: list[list[_Measured]]) -> list[list[_Measured]]:
    """Where no command was ever run twice, such as one that names a temporary file, runs of all of them are one series."""
    alike: dict[tuple[object, ...], list[list[_Measured]]] = {}
    for group in groups:
        what = group[0].series[:-1]
        others = tuple(item for item in group[0].template.setting.items() if item[0] != COMMAND)
        alike.setdefault((*what, tuple(sorted(others))), []).append(group)
    found = []
    for series in alike.values():
        if len(series) < 2 or any(len(group) > 1 for group in series):
            found += series
            continue
        joined = [measured for group in series for measured in group]
        template = msgspec.structs.replace(joined[0].template, setting=joined[0].template.setting | {COMMAND: _ANY})
        found.append([joined[0]._replace(template=template), *joined[1:]])
    return found


def _told_apart(groups: list[list[_Measured]]) -> list[list[_Measured]]:
    """Each series with only that part of its setting in which series of the same benchmark differ."""
    kept = []
    for group in groups:
        name = group[0].template.benchmark
        settings = [other[0].template.setting for other in groups if other[0].template.benchmark == name]
        differing = {
            key: value
            for key, value in group[0].template.setting.items()
            if value == _ANY or any(setting.get(key) != value for setting in settings)
        }
        first = group[0]._replace(template=msgspec.structs.replace(group[0].template, setting=differing))
        kept.append([first, *group[1:]])
    return kept


def _series(same: Sequence[_Measured], order: HistoryOrder) -> BenchmarkHistory:
    points = [_point(measured.point) for measured in same]
    if order.by_commit and all(point.commit_time for point in points):
        points.sort(key=lambda point: point.commit_time or "")
    template = same[0].template
    return msgspec.structs.replace(
        template, points=tuple(points), changes=tuple(changes_of(points, template.direction))
    )


def changes_of(points: Sequence[HistoryPoint], direction: Direction) -> Iterator[HistoryChange]:
    """Where the level changed, at once or slowly, by the points without a doubt."""
    deciding = [number for number, point in enumerate(points) if point.doubt is None]
    for change in change_points([points[number].value for number in deciding]):
        yield HistoryChange(
            place=deciding[change.place],
            end=deciding[min(change.end, len(deciding) - 1)],
            last_before=deciding[max(0, change.earliest - 1)],
            first_after=deciding[change.latest],
            before=change.before,
            after=change.after,
            ratio=change.ratio if math.isfinite(change.ratio) else None,
            confidence=change.confidence,
            verdict=_verdict(change.after - change.before, direction),
            settled=change.settled,
            drifting=change.drifting,
        )


def _verdict(rise: float, direction: Direction) -> Verdict:
    """Inconclusive where nobody said which direction is better."""
    if direction not in (Direction.HIGHER, Direction.LOWER):
        return Verdict.INCONCLUSIVE
    return Verdict.IMPROVED if (rise > 0) == (direction is Direction.HIGHER) else Verdict.REGRESSED


def failing(series: Sequence[BenchmarkHistory], fail_on: str) -> list[tuple[BenchmarkHistory, HistoryChange]]:
    """The last change of each series, if it is what `--fail-on` names: an older one was superseded."""
    last = [(each, each.changes[-1]) for each in series if each.changes]
    return [(each, change) for each, change in last if fail_on == "changed" or change.verdict is Verdict.REGRESSED]


def _nothing(order: HistoryOrder, results: Results) -> InvalidInput:
    any_metric = SummaryFilter(benchmark=order.benchmark)
    known = {series.metric for series in list_summaries(results, any_metric, limit=_RUNS_FOR_NAMES).series}
    if known and order.metric is not None:
        remedy = did_you_mean(order.metric, known) or f"it measured {', '.join(sorted(known))}"
        return InvalidInput(
            f"no run of '{order.benchmark}' has the metric '{order.metric}'", where="--metric", remedy=remedy
        )
    if known:
        return InvalidInput(
            f"no run of '{order.benchmark}' has a number", where="history", remedy="name one with --metric"
        )
    remedy = "'benchwright runs' lists the runs; a glob may name several benchmarks"
    names = {series.benchmark for series in list_summaries(results, SummaryFilter(), limit=_RUNS_FOR_NAMES).series}
    near = did_you_mean(order.benchmark, names)
    return InvalidInput(f"no run measured '{order.benchmark}'", where="history", remedy=near or remedy)


def last_benchmark(results: Results) -> str:
    """The only one of the last run; InvalidInput if it has several."""
    run = results.run("last")
    names = list(dict.fromkeys(b.pair if b.side else b.name for b in (result.benchmark for result in run.results)))
    if len(names) != 1:
        shown = ", ".join(names[:_MOST_NAMES]) + ("…" if len(names) > _MOST_NAMES else "")
        raise InvalidInput(
            f"the last run has several benchmarks: {shown}" if names else "the last run has no benchmark",
            where="history",
            remedy=f"name one, such as: benchwright history {shlex.quote(names[0])}" if names else "name one",
        )
    return names[0]


def history_notice(series: Sequence[BenchmarkHistory], topic: str) -> Notice:
    """The notice to send: for each series its last change, or that there is none."""
    verdicts = []
    for each in series:
        change = each.changes[-1] if each.changes else None
        verdicts.append(
            NoticeVerdict(
                benchmark=each.benchmark,
                metric=each.metric,
                verdict=Finding.SAME if change is None else Finding(change.verdict.value),
                text=summary_words(each) if change is None else _without_verdict(change_words(each, change), change),
                ratio=None if change is None else change.ratio,
            )
        )
    changed = sum(bool(each.changes) for each in series)
    title = f"{topic}: {changed} of {len(series)} series changed"
    if len(series) == 1:
        last = series[0].changes[-1] if series[0].changes else None
        title = f"{heading(series[0])}: {summary_words(series[0]) if last is None else change_words(series[0], last)}"
    return Notice(
        title=title,
        outcome=outcome_of(verdicts),
        verdicts=tuple(verdicts),
        markdown=history_markdown(series),
        topic=f"history {topic}",
    )


def _without_verdict(words: str, change: HistoryChange) -> str:
    """A notice says the verdict itself."""
    return words.removeprefix(f"{change.verdict.value} ")

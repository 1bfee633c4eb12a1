"""Changes as objects: found in the summaries, kept with a state, an owner and a note.

A change is looked for within one series: one machine and one setting. It keeps its number while later runs move its place a little.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.metric_history import BenchmarkHistory, HistoryChange, HistoryPoint
from benchwright.regress.notify.notice import Finding, Notice, NoticeVerdict, outcome_of
from benchwright.regress.run_history import changes_of
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_value
from benchwright.server.queries import series_sizes
from benchwright.server.server_file import ServerFile
from benchwright.store.base import RunFilter, SummaryFilter, SummaryPoint, SummarySeries
from benchwright.store.schema import MAIN
from benchwright.store.sql_store import SqlStore

STATES = ("new", "confirmed", "explained", "fixed")
NEW, CONFIRMED = STATES[:2]
_MOST_TEXT = 2000
_MOST_IN_LIST = 1000
_WINDOW = 300  # points in which changes are looked for; those found before stay


class ChangeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A change in a series. Its runs and commits are the ones it lies between; `first_s` and `last_s` when those were started."""

    labels: dict[str, str]
    unit: str | None
    machine: str
    before: float
    after: float
    ratio: float | None
    confidence: float
    settled: bool
    drifting: bool
    runs: tuple[str, str]  # uids
    run_names: tuple[str, str]
    commits: tuple[str | None, str | None]
    setting: dict[str, str] = {}


class KeptChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change and what people say about it."""

    key: int
    series: str
    benchmark: str
    metric: str
    host: str
    verdict: str
    first_s: float
    last_s: float
    state: str
    owner: str
    note: str
    facts: ChangeFacts


def history_of(series: SummarySeries) -> BenchmarkHistory:
    """A series as `history` shows it, without its changes; points without a number are left out."""
    points = tuple(_point(point) for point in series.points if point.value is not None)
    fields = ("benchmark", "metric", "labels", "unit", "direction", "machine", "host", "setting")
    return BenchmarkHistory(**{name: getattr(series, name) for name in fields}, points=points)


def _point(point: SummaryPoint) -> HistoryPoint:
    names = ("run", "uid", "started", "revision", "commit", "commit_time", "doubt")
    return HistoryPoint(value=point.value or 0.0, **{name: getattr(point, name) for name in names})


class ChangeBook(ServerFile):
    """The changes of one store, as a project sees them."""

    def __init__(self, base: Path, project: str = MAIN) -> None:
        super().__init__(base)
        self.project = project

    def of_project(self, name: str) -> ChangeBook:
        return ChangeBook(self.path.parent, name)

    def examine_run(self, store: SqlStore, uid: str) -> None:
        """Looks for changes in the series that a run has added a point to: the headline metrics of its benchmarks."""
        known_by = SummaryFilter(headline=True, runs=RunFilter(uid=uid))
        self.examine(store, [series.id for series in store.summaries(known_by)])

    def examine_all(self, store: SqlStore) -> None:
        """The same for every series that has another number of points than when it was last looked at."""
        counts = series_sizes(store)
        with self.opened() as database:
            seen = dict(database.execute("SELECT series, points FROM examined"))
        fresh = [series for series, points in counts.items() if seen.get(series) != points]
        self.examine(store, fresh)
        with self.opened() as database:
            marks = [(series, counts[series]) for series in fresh]
            database.executemany("INSERT OR REPLACE INTO examined (series, points) VALUES (?,?)", marks)

    def examine(self, store: SqlStore, ids: Iterable[str]) -> None:
        for each in ids:
            for series in store.summaries(SummaryFilter(series=(each,)), newest=_WINDOW):
                self._keep(series)

    def _keep(self, series: SummarySeries) -> None:
        history = history_of(series)
        times = {point.uid: point.started_s for point in series.points}
        changes = [(change, _facts(history, change)) for change in changes_of(history.points, history.direction)]
        with self.opened() as database:
            database.execute("BEGIN IMMEDIATE")
            known = [_kept(row) for row in database.execute(f"{_ALL} WHERE series = ?", (series.id,))]
            for change, facts in changes:
                span = times[facts.runs[0]], times[facts.runs[1]]
                same = next((k for k in known if _is_same(k, change, span)), None)
                known = [k for k in known if k is not same]
                if same is None:
                    _insert(database, series, change, facts, span, self.project)
                else:
                    _update(database, same, facts, span)
            # What later runs no longer bear out goes, unless somebody has said something about it.
            begin = min(times.values(), default=0.0)
            gone = [
                k.key for k in known if k.first_s > begin and k.state in (NEW, CONFIRMED) and not k.owner and not k.note
            ]
            database.executemany("DELETE FROM changes WHERE key = ?", [(key,) for key in gone])

    def of_series(self, ids: Sequence[str]) -> list[KeptChange]:
        if not ids:
            return []
        marks = ",".join("?" * len(ids))
        query = f"{_ALL} WHERE project = ? AND series IN ({marks}) ORDER BY last_s"
        return self._found(query, (self.project, *ids))

    def since(self, seconds: float) -> list[KeptChange]:
        """Newest first."""
        query = f"{_ALL} WHERE project = ? AND last_s >= ? ORDER BY last_s DESC LIMIT {_MOST_IN_LIST}"
        return self._found(query, (self.project, seconds))

    def one(self, key: int) -> KeptChange | None:
        return next(iter(self._found(f"{_ALL} WHERE project = ? AND key = ?", (self.project, key))), None)

    def say(self, key: int, state: str, owner: str, note: str) -> KeptChange:
        """Keeps what people say; InvalidInput if there is no such change or state."""
        if state not in STATES:
            raise InvalidInput(f"'{state[:40]}' is not a state", where="state", remedy=f"use {', '.join(STATES)}")
        with self.opened() as database:
            row = (state, owner[:_MOST_TEXT], note[:_MOST_TEXT], key, self.project)
            query = "UPDATE changes SET state = ?, owner = ?, note = ? WHERE key = ? AND project = ?"
            done = database.execute(query, row)
        if not done.rowcount or (kept := self.one(key)) is None:
            raise InvalidInput(f"there is no change {key}", where="changes", remedy="it may be gone: see the list")
        return kept

    def to_tell(self) -> list[KeptChange]:
        """Confirmed changes that nobody has been notified of; from now on they count as sent."""
        with self.opened() as database:
            database.execute("BEGIN IMMEDIATE")
            rows = database.execute(f"{_ALL} WHERE state = ? AND told = 0", (CONFIRMED,)).fetchall()
            database.execute("UPDATE changes SET told = 1 WHERE state = ?", (CONFIRMED,))
        return [_kept(row) for row in rows]

    def _found(self, query: str, values: tuple[object, ...]) -> list[KeptChange]:
        if not self.path.exists():
            return []
        with self.opened() as database:
            return [_kept(row) for row in database.execute(query, values)]


_ALL = "SELECT key, series, benchmark, metric, host, verdict, first_s, last_s, state, owner, note, body FROM changes"


def _kept(row: Sequence[Any]) -> KeptChange:
    *head, body = row
    facts = msgspec.json.decode(body, type=ChangeFacts)
    return KeptChange(**dict(zip(KeptChange.__struct_fields__, head, strict=False)), facts=facts)


def _facts(history: BenchmarkHistory, change: HistoryChange) -> ChangeFacts:
    first, last = (change.place, change.end) if change.drifting else (change.last_before, change.first_after)
    ends = history.points[first], history.points[last]
    return ChangeFacts(
        labels=history.labels,
        unit=history.unit,
        machine=history.machine,
        before=change.before,
        after=change.after,
        ratio=change.ratio,
        confidence=change.confidence,
        settled=change.settled,
        drifting=change.drifting,
        runs=(ends[0].uid, ends[1].uid),
        run_names=(ends[0].run, ends[1].run),
        commits=history.commits(change),
        setting=history.setting,
    )


def _is_same(kept: KeptChange, change: HistoryChange, span: tuple[float, float]) -> bool:
    """In the same direction, and their places overlap."""
    return kept.verdict == change.verdict.value and kept.first_s <= span[1] and span[0] <= kept.last_s


def _insert(
    database: sqlite3.Connection,
    series: SummarySeries,
    change: HistoryChange,
    facts: ChangeFacts,
    span: tuple[float, float],
    project: str,
) -> None:
    state = CONFIRMED if facts.settled else NEW
    named = (series.id, series.benchmark, series.metric, series.host, change.verdict.value)
    database.execute(
        "INSERT INTO changes (series, benchmark, metric, host, verdict, first_s, last_s, body, state, project) VALUES (?,?,?,?,?,?,?,?,?,?)",
        (*named, *span, msgspec.json.encode(facts), state, project),
    )


def _update(database: sqlite3.Connection, kept: KeptChange, facts: ChangeFacts, span: tuple[float, float]) -> None:
    """A new one is confirmed once later runs no longer move it; what people said stays."""
    state = CONFIRMED if kept.state == NEW and facts.settled else kept.state
    row = (*span, msgspec.json.encode(facts), state, kept.key)
    database.execute("UPDATE changes SET first_s = ?, last_s = ?, body = ?, state = ? WHERE key = ?", row)


def notice_of_changes(found: Sequence[KeptChange]) -> Notice:
    """One notice for changes that were confirmed together."""
    verdicts = tuple(
        NoticeVerdict(
            benchmark=kept.benchmark,
            metric=metric_name(kept.metric, kept.facts.labels),
            verdict=Finding(kept.verdict),
            text=f"{format_value(kept.facts.before, kept.facts.unit)} → {format_value(kept.facts.after, kept.facts.unit)} on {kept.host}",
            ratio=kept.facts.ratio,
        )
        for kept in found
    )
    regressed = sum(kept.verdict == Finding.REGRESSED.value for kept in found)
    title = f"{counted(len(found), 'change')} confirmed, {regressed} for the worse"
    numbers = " ".join(str(kept.key) for kept in found)
    return Notice(title=title, outcome=outcome_of(verdicts), verdicts=verdicts, topic=f"changes {numbers}")

"""Queries that only pages need: counts, machines, failures. Each is one query, however many runs there are."""

from __future__ import annotations

import functools
import itertools
import json
import statistics
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, func, select

from benchwright.core.machine import Machine
from benchwright.core.status import Status
from benchwright.store import schema
from benchwright.store.base import RunFilter, RunRow
from benchwright.store.run_document import plain
from benchwright.store.run_query import glob, row_of, select_runs
from benchwright.store.sql_store import SqlStore

_decoded = functools.lru_cache(maxsize=4096)(json.loads)  # many series have the same labels
_R, _P, _S, _B = schema.runs.c, schema.summaries.c, schema.summary_series.c, schema.results.c
_GAPS = 20  # of a machine, from which its usual silence is known
_LEAST_GAPS = 4
_NEWEST_RUNS = 1000
_MOST_SILENT = 500
_MOST_FAILING = 500
_NOISE_RUNS = 200


class RunsFound(NamedTuple):
    rows: list[RunRow]
    total: int  # of all that match


class MachineSeen(NamedTuple):
    """`usual_gap_s`: between its latest runs, nine of ten gaps are shorter; None of too few runs."""

    host: str
    machine: str
    runs: int
    first_s: float
    last_s: float
    newest: str  # the uid of its newest run
    usual_gap_s: float | None = None


class Failing(NamedTuple):
    benchmark: str
    host: str
    failures: int
    first_s: float  # since the time asked for
    last_s: float
    reason: str
    last_ok_s: float | None  # None: it never succeeded


def find_runs(store: SqlStore, where: RunFilter, *, limit: int, offset: int) -> RunsFound:
    with store.reading() as connection:
        dialect = connection.dialect.name
        every = select_runs(where, limit=None, newest_first=True, dialect=dialect, project=store.project)
        rows = connection.execute(every.limit(limit).offset(offset)).mappings()
        found = [row_of(row) for row in rows]
        matching = every.with_only_columns(_R.key).order_by(None).subquery()
        count = connection.execute(select(func.count()).select_from(matching)).scalar_one()
    return RunsFound(found, count)


def metric_names(store: SqlStore) -> list[str]:
    """The ones with most series first."""
    own = _S.project == store.project
    query = select(_S.metric).where(own).group_by(_S.metric).order_by(func.count().desc(), _S.metric)
    with store.reading() as connection:
        return list(connection.execute(query).scalars())


def host_names(store: SqlStore) -> list[str]:
    with store.reading() as connection:
        query = select(_R.host).where(_R.project == store.project).distinct().order_by(_R.host)
        return list(connection.execute(query).scalars())


def headline_series(
    store: SqlStore, *, benchmark: str | None, machine: str | None, limit: int, offset: int
) -> list[str]:
    """The ids of series whose newest point is what its benchmark is known by, in the order of `RunStore.series`."""
    newest = (
        select(_P.headline)
        .where(_P.series == _S.key)
        .order_by(_P.started_s.desc(), _P.key.desc())
        .limit(1)
        .correlate(schema.summary_series)
    )
    query = select(_S.hash).where(_S.project == store.project, newest.scalar_subquery())
    query = query.order_by(_S.benchmark, _S.metric, _S.host, _S.key)
    with store.reading() as connection:
        if benchmark is not None:
            query = query.where(glob(_S.benchmark, benchmark, connection.dialect.name))
        if machine is not None:
            text = plain(machine)
            query = query.where(_S.machine.startswith(text, autoescape=True) | (_S.host == text))
        return list(connection.execute(query.limit(limit).offset(offset)).scalars())


def recent_values(store: SqlStore, ids: Sequence[str], count: int) -> dict[str, list[float]]:
    """Series → its newest values, oldest first: from the index alone."""
    inner = schema.summaries.alias()
    oldest = select(inner.c.started_s).where(inner.c.series == _S.key).correlate(schema.summary_series)
    bound = oldest.order_by(inner.c.started_s.desc()).limit(1).offset(count - 1).scalar_subquery()
    query = (
        select(_S.hash, _P.value)
        .join_from(schema.summary_series, schema.summaries, _P.series == _S.key)
        .where(
            _S.project == store.project,
            _S.hash.in_(ids),
            _P.started_s >= func.coalesce(bound, -1e300),
            _P.value.is_not(None),
        )
        .order_by(_P.series, _P.started_s)
    )
    found: dict[str, list[float]] = {}
    with store.reading() as connection:
        for series, value in connection.execute(query).all():
            found.setdefault(series, []).append(value)
    return found


def series_sizes(store: SqlStore) -> dict[str, str]:
    """Series → how many points it has, and its newest; only headline metrics."""
    query = (
        select(_S.hash, func.count(), func.max(_P.key))
        .join_from(schema.summaries, schema.summary_series, _S.key == _P.series)
        .where(_P.headline, _S.project == store.project)
        .group_by(_S.hash)
    )
    with store.reading() as connection:
        return {series: f"{count}:{newest}" for series, count, newest in connection.execute(query).all()}


def machines_seen(store: SqlStore) -> list[MachineSeen]:
    """Each host with the make it had last, the one that ran last first."""
    own = _R.project == store.project
    every = select(_R.host, func.count(), func.min(_R.started_s), func.max(_R.started_s)).where(own).group_by(_R.host)
    order = (_R.started_s.desc(), _R.key.desc())
    columns = (_R.host, _R.machine, _R.id, _R.started_s)
    newest: dict[str, Any] = {}
    starts: dict[str, list[float]] = {}
    with store.reading() as connection:
        counts = {host: rest for host, *rest in connection.execute(every)}
        for row in connection.execute(select(*columns).where(own).order_by(*order).limit(_NEWEST_RUNS)):
            newest.setdefault(row.host, row)
            starts.setdefault(row.host, []).append(row.started_s)
        silent = [last for host, (_, _, last) in counts.items() if host not in newest][:_MOST_SILENT]
        if silent:
            for row in connection.execute(select(*columns).where(own, _R.started_s.in_(silent)).order_by(*order)):
                newest.setdefault(row.host, row)
    found = [
        MachineSeen(
            host,
            row.machine,
            runs,
            first,
            last,
            row.id,
            _usual_gap(starts.get(host, [])[: _GAPS + 1], runs, first, last),
        )
        for host, row in newest.items()
        for runs, first, last in [counts[host]]
    ]
    return sorted(found, key=lambda each: -each.last_s)


def _usual_gap(starts: Sequence[float], runs: int, first: float, last: float) -> float | None:
    """By its latest runs; of a host that has none among the newest of all, by how often it ran while it did."""
    gaps = sorted(newer - older for newer, older in itertools.pairwise(starts))
    if len(gaps) >= _LEAST_GAPS:
        return gaps[int(0.9 * (len(gaps) - 1))]
    return (last - first) / (runs - 1) if runs > _LEAST_GAPS and not starts else None


class _OnlyMachine(msgspec.Struct):
    machine: Machine


def machine_facts(store: SqlStore, uids: Sequence[str]) -> dict[str, Machine]:
    """Run → the machine it ran on, as far as it can be read."""
    d = schema.documents.c
    query = select(_R.id, d.data).join_from(schema.documents, schema.runs, _R.key == d.run)
    query = query.where(_R.project == store.project, _R.id.in_(uids))
    found: dict[str, Machine] = {}
    with store.reading() as connection:
        for uid, data in connection.execute(query).all():
            with suppress(zlib.error, msgspec.MsgspecError, ValueError):  # a damaged document: `store check` tells
                found[uid] = msgspec.json.decode(zlib.decompress(data), type=_OnlyMachine).machine
    return found


def noise_by_host(store: SqlStore) -> dict[str, list[float]]:
    """Host → of each of its latest runs the median half width of the confidence intervals, as a fraction; oldest first."""
    order = (_R.started_s.desc(), _R.key.desc())
    newest = select(_R.key).where(_R.project == store.project).order_by(*order).limit(_NOISE_RUNS).scalar_subquery()
    query = (
        select(_R.host, _R.started_s, _P.run, _P.value, _P.low, _P.high)
        .join_from(schema.summaries, schema.runs, _R.key == _P.run)
        .where(_P.run.in_(newest), _P.headline, _P.low.is_not(None))
        .order_by(_R.started_s, _P.run)
    )
    widths: dict[tuple[str, int], list[float]] = {}
    with store.reading() as connection:
        for host, _, run, value, low, high in connection.execute(query).all():
            if value:
                widths.setdefault((host, run), []).append((high - low) / 2 / abs(value))
    found: dict[str, list[float]] = {}
    for (host, _), each in widths.items():
        found.setdefault(host, []).append(statistics.median(each))
    return found


def failing_since(store: SqlStore, since_s: float) -> list[Failing]:
    """Benchmarks whose newest result on a host is a failure, begun since then; what failed before already is not among them."""
    failed = _B.status == Status.FAILED.value
    failures = schema.results.join(schema.runs, _R.key == _B.run)

    def in_runs(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
        """Only of runs with failures: those are few."""
        return failed & _B.run.in_(select(_R.key).where(_R.failed > 0, _R.project == store.project, *conditions))

    recent = (
        select(_B.benchmark, _R.host, func.count(), func.min(_R.started_s), func.max(_R.started_s), func.max(_B.reason))
        .select_from(failures)
        .where(in_runs(_R.started_s >= since_s))
        .group_by(_B.benchmark, _R.host)
    )
    with store.reading() as connection:
        rows = connection.execute(recent).all()
        if not rows:
            return []
        names = sorted({row[0] for row in rows})[:_MOST_FAILING]
        # A result that is ok has summaries; so may one of which only some launches failed.
        newest = select(func.max(_P.started_s)).where(_P.series == _S.key).correlate(schema.summary_series)
        measured = select(_S.benchmark, _S.host, newest.scalar_subquery())
        measured = measured.where(_S.project == store.project, _S.benchmark.in_(names))
        last_ok: dict[tuple[str, str], float] = {}
        for name, host, last in connection.execute(measured):
            last_ok[name, host] = max(last or 0.0, last_ok.get((name, host), 0.0))
        before = (
            select(_B.benchmark, _R.host, func.max(_R.started_s))
            .select_from(failures)
            .where(in_runs(_R.started_s < since_s))
            .group_by(_B.benchmark, _R.host)
        )
        failed_before = {(name, host): last for name, host, last in connection.execute(before)}
    found = []
    for name, host, count, first, last, reason in rows:
        ok = last_ok.get((name, host))
        began_before = (name, host) in failed_before and (ok is None or ok <= failed_before[name, host])
        if (ok is None or ok <= last) and not began_before:
            found.append(Failing(name, host, count, first, last, reason or "", ok))
    return sorted(found, key=lambda each: (-each.last_s, each.benchmark))


def commit_start_s(store: SqlStore, commit: str) -> float | None:
    """When the first run of a commit was started; `commit` may be its beginning."""
    known = _R.measured_commit.startswith(plain(commit), autoescape=True)
    with store.reading() as connection:
        query = select(func.min(_R.started_s)).where(_R.project == store.project, known)
        return connection.execute(query).scalar()


class NamedRuns(NamedTuple):
    """Name → uids: of runs by their id or name, and of baselines."""

    runs: dict[str, list[str]]
    baselines: dict[str, list[str]]


def runs_called(store: SqlStore, words: Sequence[str]) -> NamedRuns:
    """A uid means only that run, even if another is called so."""
    wanted = [plain(word) for word in words]
    b = schema.baselines.c
    query = select(_R.id, _R.called, b.name).outerjoin_from(schema.runs, schema.baselines, b.run == _R.key)
    found = NamedRuns({}, {})
    by_uid = set()
    with store.reading() as connection:
        of_baselines = _R.key.in_(select(b.run).where(b.name.in_(wanted)))  # each of the three has an index
        named = _R.id.in_(wanted) | _R.called.in_(wanted) | of_baselines
        rows = connection.execute(query.where(_R.project == store.project, named)).all()
    for uid, called, baseline in rows:
        by_uid |= {uid} & set(wanted)
        same = found.runs.setdefault(called, [])
        same += [uid] if uid not in same else []
        if baseline is not None:
            found.baselines[baseline] = [uid]
    found.runs.update({uid: [uid] for uid in by_uid})
    return found


def series_of_run(store: SqlStore, uid: str) -> list[tuple[str, str, str, dict[str, str]]]:
    """The id, benchmark, metric and labels of every series that the run has a point of."""
    query = (
        select(_S.hash, _S.benchmark, _S.metric, _S.labels)
        .join_from(schema.summaries, schema.summary_series, _S.key == _P.series)
        .join(schema.runs, _R.key == _P.run)
        .where(_R.project == store.project, _R.id == plain(uid))
    )
    with store.reading() as connection:
        return [
            (found, name, metric, _decoded(labels)) for found, name, metric, labels in connection.execute(query).all()
        ]

"""Which summaries a SummaryFilter finds, as SQL, and thinning long series."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Column, ColumnElement, Connection, Select, case, func, null, select, union_all

from benchwright.core.metric import Direction
from benchwright.core.stored_file import Unreadable, short
from benchwright.store.base import RunFilter, SummaryFilter, SummaryPoint, SummarySeries
from benchwright.store.connection import project_of
from benchwright.store.run_document import plain
from benchwright.store.run_query import glob, run_conditions
from benchwright.store.schema import runs, summaries, summary_series

_AT_ONCE = 400  # keys of one IN (…); SQLite joins at most 500 queries
_FETCHED = 10_000
_S, _P, _R = summary_series.c, summaries.c, runs.c
_OF_POINT: dict[str, ColumnElement[Any]] = {
    "run": _R.called,
    "uid": _R.id,
    "revision": func.coalesce(_P.revision, _R.revision),
    "commit": func.coalesce(_P.revision, _R.measured_commit),
    "commit_time": case((_P.revision.is_(None), _R.commit_time), else_=null()),  # not known of one side
} | {name: _R[name] for name in ("started", "ended")}
_POINT = [_OF_POINT[name] if name in _OF_POINT else _P[name] for name in SummaryPoint.__struct_fields__]
_WIDTH = len(_POINT)
_EVER = -1e300
_STARTED_S = SummaryPoint.__struct_fields__.index("started_s")
_SERIES = tuple(_S.keys())
_decoded = lru_cache(maxsize=4096)(json.loads)  # many series have the same labels and settings
_WHOLE: list[Any] = [*_POINT, *_S]
_POINT_OF: list[Any] = [*_POINT, _P.series]


class _Place(NamedTuple):
    """Where a query runs: the kind of database, and the project that it may see."""

    dialect: str
    project: str


def _place(connection: Connection) -> _Place:
    return _Place(connection.dialect.name, project_of(connection))


def find_series(connection: Connection, where: SummaryFilter, *, limit: int | None, offset: int) -> list[SummarySeries]:
    """One look into the index for each series, however many points it has."""
    place = _place(connection)
    newest = _newest(where, place, 1).scalar_subquery()
    query = select(*_WHOLE).join_from(summary_series, summaries, _P.key == newest).join(runs, _R.key == _P.run)
    for condition in _of_series(where, place):
        query = query.where(condition)
    query = query.order_by(*(_in_order(column, place.dialect) for column in (_S.benchmark, _S.metric, _S.host)), _S.key)
    query = query.limit(limit if limit is None else max(0, limit)).offset(max(0, offset) or None)
    return [_series_of(row[_WIDTH:], (_point(row),)) for row in connection.execute(query).all()]


def find_summaries(
    connection: Connection, where: SummaryFilter, *, newest: int | None, most: int | None
) -> list[SummarySeries]:
    points: dict[int, list[SummaryPoint]] = {}
    for row in _rows(connection, where, newest, most):
        points.setdefault(row[_WIDTH], []).append(_point(row))
    found: list[SummarySeries] = []
    for keys in _parts(list(points)):
        query = select(*_S).where(_S.key.in_(keys))
        found += [_series_of(row, tuple(points[row.key])) for row in connection.execute(query)]
    return sorted(found, key=lambda each: (each.benchmark, each.metric, each.host, each.id))


def _rows(connection: Connection, where: SummaryFilter, newest: int | None, most: int | None) -> Iterator[Any]:
    if most is not None:
        yield from _thinned(connection, where, newest, most)
        return
    place = _place(connection)
    if newest is not None and (newest < 1 or list(_of_points(where, place.dialect))):
        yield from _by_key(connection, _newest_keys(connection, where, newest))
        return
    query = _matching(select(*_POINT_OF), where, None, place)
    if newest is None:
        yield from _fetched(connection, query)
        return
    # Bounded by the time of the oldest of them: one look into the index for each series, whatever the planner thinks.
    rows = _fetched(connection, query.where(_P.started_s >= func.coalesce(_oldest_of(newest), _EVER)))
    for _, same in groupby(rows, key=lambda row: row[_WIDTH]):
        yield from list(same)[-newest:]  # some may have begun at the same time


def _oldest_of(newest: int) -> ColumnElement[float]:
    """When the oldest of the newest points was started, of the series of the enclosing query; NULL if there are fewer."""
    inner = summaries.alias()
    query = select(inner.c.started_s).where(inner.c.series == _S.key).correlate(summary_series)
    return query.order_by(inner.c.started_s.desc()).limit(1).offset(newest - 1).scalar_subquery()


def _matching(
    query: Select[Any], where: SummaryFilter, newest: int | None, place: _Place, *, needs_runs: bool = True
) -> Select[Any]:
    """Rows of points, of each series oldest first."""
    query = query.select_from(summaries).join(summary_series, _S.key == _P.series)
    of_points = list(_of_points(where, place.dialect))
    if needs_runs or of_points:
        query = query.join(runs, _R.key == _P.run)
    for condition in (*_of_series(where, place), *of_points):
        query = query.where(condition)
    if newest is not None:
        query = query.where(_P.key.in_(_newest(where, place, max(0, newest))))
    return query.order_by(_P.series, _P.started_s, _P.key)


def _newest(where: SummaryFilter, place: _Place, count: int) -> Select[Any]:
    """The keys of the newest points that match, of the series of the enclosing query."""
    inner = summaries.alias()
    query = select(inner.c.key).where(inner.c.series == _S.key).correlate(summary_series)
    if conditions := list(_of_points(where, place.dialect)):
        # The conditions name the tables, not their aliases: points that match are looked up by key.
        fitting = select(_P.key).join(runs, _R.key == _P.run).where(_P.key == inner.c.key, *conditions)
        query = query.where(fitting.correlate(inner).exists())
    return query.order_by(inner.c.started_s.desc(), inner.c.key.desc()).limit(count)


def _newest_keys(connection: Connection, where: SummaryFilter, count: int) -> list[int]:
    """Looks into the index for each series, where one query for all would look at every point."""
    place = _place(connection)
    series = connection.execute(select(_S.key).where(*_of_series(where, place)).order_by(_S.key)).scalars().all()
    conditions = list(_of_points(where, place.dialect))
    found: list[int] = []
    for keys in _parts(series):
        each = []
        for key in keys:
            query = select(_P.key).where(_P.series == key, *conditions)
            query = query.join_from(summaries, runs, _R.key == _P.run) if conditions else query
            query = query.order_by(_P.started_s.desc(), _P.key.desc()).limit(max(0, count))
            each.append(select(query.subquery().c.key))
        found += connection.execute(union_all(*each)).scalars()
    return found


def _by_key(connection: Connection, chosen: Sequence[int]) -> Iterator[Any]:
    """Of each series oldest first."""
    found: list[Any] = []
    for some in _parts(chosen):
        query = select(*_POINT_OF, _P.key).join_from(summaries, runs, _R.key == _P.run)
        found += connection.execute(query.where(_P.key.in_(some))).all()
    yield from sorted(found, key=lambda row: (row[_WIDTH], row[_STARTED_S], row[-1]))


def _thinned(connection: Connection, where: SummaryFilter, newest: int | None, most: int) -> Iterator[Any]:
    """Two looks: all values, of which some are chosen, and the rest of those."""
    columns = select(_P.key, _P.series, _P.value)
    light = _matching(columns, where, newest, _place(connection), needs_runs=False)  # the index has it all
    keys: dict[int, list[int]] = {}
    values: dict[int, list[float]] = {}
    for series, same in groupby(_fetched(connection, light.where(_P.value.is_not(None))), key=itemgetter(1)):
        rows = list(same)
        keys[series], values[series] = [row[0] for row in rows], [row[2] for row in rows]
    chosen = [keys[series][place] for series in keys for place in thinned(values[series], most)]
    yield from _by_key(connection, chosen)


def thinned(values: Sequence[float], most: int) -> list[int]:
    """The places of about `most` of the values: the first, the last, and the extremes of each of as many parts as fit."""
    if len(values) <= most:
        return list(range(len(values)))
    parts = max(1, (most - 2) // 2)
    chosen = {0, len(values) - 1}
    for part in range(parts):
        places = range(part * len(values) // parts, (part + 1) * len(values) // parts)
        chosen |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return sorted(chosen)


def _of_series(where: SummaryFilter, place: _Place) -> Iterator[ColumnElement[bool]]:
    dialect = place.dialect
    yield _S.project == place.project
    if where.series:
        yield _S.hash.in_([plain(each) for each in where.series])
    if where.benchmark is not None:
        yield glob(_S.benchmark, where.benchmark, dialect) | ((_S.pair != "") & glob(_S.pair, where.benchmark, dialect))
    if where.metric is not None:
        yield _S.metric == plain(where.metric)
    if where.runs.machine is not None:
        machine = plain(where.runs.machine)
        yield _S.machine.startswith(machine, autoescape=True) | (_S.host == machine)


def _of_points(where: SummaryFilter, dialect: str) -> Iterator[ColumnElement[bool]]:
    if where.headline:
        yield _P.headline
    if where.commit is not None:
        yield _OF_POINT["commit"].startswith(plain(where.commit), autoescape=True)
    if where.runs != RunFilter(machine=where.runs.machine):  # that of its series
        yield from run_conditions(replace(where.runs, machine=None), dialect)


def _in_order(column: Column[str], dialect: str) -> ColumnElement[str]:
    """By the letters' codes, in every database."""
    return column.collate("C") if dialect == "postgresql" else column


def _point(row: Any) -> SummaryPoint:
    return SummaryPoint(**dict(zip(SummaryPoint.__struct_fields__, row[:_WIDTH], strict=True)))


def _series_of(row: Any, points: tuple[SummaryPoint, ...]) -> SummarySeries:
    """Unreadable if it is damaged."""
    body = dict(zip(_SERIES, row, strict=True))
    del body["key"], body["project"]
    try:
        body |= {name: dict(_decoded(body[name])) for name in ("labels", "setting")}
        return SummarySeries(id=body.pop("hash"), points=points, **body | {"direction": Direction(body["direction"])})
    except (TypeError, ValueError) as error:
        name = short(str(body.get("benchmark")), 80)
        raise Unreadable(f"the series of {name} cannot be read: {error}") from None


def _fetched(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    """Many rows at a time: one by one takes three times as long."""
    return chain.from_iterable(connection.execute(query).partitions(_FETCHED))


def _parts(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]

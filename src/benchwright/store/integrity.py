"""The consistency check of a store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select, text

from benchwright.core.run import Run
from benchwright.core.stored_file import short
from benchwright.store.base import Aggregate
from benchwright.store.connection import project_of
from benchwright.store.ingest import PackedRun, pack_run
from benchwright.store.run_document import (
    DamagedDocument,
    Place,
    RunSamples,
    unpack_document,
    unpacked,
)
from benchwright.store.samples import DamagedSamples
from benchwright.store.schema import (
    comparables,
    documents,
    measurements,
    results,
    run_labels,
    runs,
    samples,
    series,
    summaries,
    summary_series,
)
from benchwright.store.summaries import SUMMARY_RULES, pack_comparable, unpack_comparable

_MOST = 20  # problems of one kind
_RUNS_AT_ONCE = 200
_BYTES_AT_ONCE = 16 << 20
_DERIVED = (
    *("called", "name", "started", "started_s", "ended", "status", "machine", "host", "folder", "labels"),
    *("revision", "measured_commit", "commit_time"),
    *("benchmarks", "failed", "measurements"),
)
_OF_MEASUREMENT = ("place", "result", "launch", "measurement", "counted", "warmup_samples", "samples")
_OF_SUMMARY = [column.name for column in summaries.c if column.name not in ("key", "run", "series")]
_OF_SERIES = [column.name for column in summary_series.c if column.name != "key"]


def problems(connection: Connection, aggregate: Aggregate | None) -> Iterator[str]:
    """The problems found, at most 20 of each kind."""
    sqlite = (_pages, _orphans) if connection.dialect.name == "sqlite" else ()
    for found in (*(check(connection) for check in sqlite), _contents(connection, aggregate)):
        yield from islice(found, _MOST)
        if next(found, None) is not None:
            yield "… and more of the same kind"


def duplicates(connection: Connection) -> Iterator[str]:
    """Runs that share a name, and runs stored under two ids."""
    own = runs.c.project == project_of(connection)
    for column, said in ((runs.c.called, "are called"), (runs.c.digest, "are copies of")):
        several = select(column).where(own).group_by(column).having(func.count() > 1)
        query = select(column, runs.c.id, runs.c.called, runs.c.host, runs.c.folder).where(own, column.in_(several))
        groups: dict[str, list[Any]] = {}
        for row in connection.execute(query.order_by(column, runs.c.key)):
            groups.setdefault(row[0], []).append(row)
        for together in groups.values():
            where = ", ".join(f"{row.id} ({row.host}: {row.folder})" for row in together)
            yield f"{len(together)} runs {said} {together[0].called}: {where}"


def _pages(connection: Connection) -> Iterator[str]:
    for (line,) in connection.execute(text("PRAGMA integrity_check(50)")):
        if line != "ok":
            yield f"the file is damaged: {' '.join(str(line).split())}"


def _orphans(connection: Connection) -> Iterator[str]:
    """A server makes sure of this by itself."""
    found = Counter((table, of) for table, _, of, _ in connection.execute(text("PRAGMA foreign_key_check")))
    yield from (f"{count} rows of {table} belong to nothing in {of}" for (table, of), count in found.items())


def samples_of(connection: Connection, run: int) -> bytes:
    """The arrays of a run, concatenated."""
    query = select(samples.c.data).where(samples.c.run == run).order_by(samples.c.piece)
    return b"".join(map(bytes, connection.execute(query).scalars()))


class _Parts(msgspec.Struct):
    """The rows of one run."""

    run: Any
    document: Any = None
    results: list[Any] = []
    labels: list[Any] = []
    measurements: list[Any] = []
    summaries: list[Any] = []
    comparable: bytes | None = None
    arrays: list[bytes] = []


def _contents(connection: Connection, aggregate: Aggregate | None) -> Iterator[str]:
    """Arrays that changed since they were stored, and columns that do not follow from them and the document."""
    for keys in _some_at_once(connection):
        for parts in _parts(connection, keys):
            try:
                yield from list(_wrong_with(parts, aggregate))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                yield f"run {parts.run.called}: its rows contradict each other ({type(error).__name__}: {error})"


def _some_at_once(connection: Connection) -> Iterator[list[int]]:
    """Keys of runs, in groups that fit into memory."""
    m = measurements.c
    size = select(m.run, func.sum(m.size_bytes).label("bytes")).group_by(m.run).subquery()
    query = select(runs.c.key, func.coalesce(size.c.bytes, 0)).outerjoin_from(runs, size, size.c.run == runs.c.key)
    keys: list[int] = []
    total = 0
    query = query.where(runs.c.project == project_of(connection))
    for key, size_bytes in connection.execute(query.order_by(runs.c.key)).all():
        keys.append(key)
        total += size_bytes
        if len(keys) == _RUNS_AT_ONCE or total > _BYTES_AT_ONCE:
            yield keys
            keys, total = [], 0
    if keys:
        yield keys


def _parts(connection: Connection, keys: Sequence[int]) -> list[_Parts]:
    found = {row.key: _Parts(row) for row in connection.execute(select(runs).where(runs.c.key.in_(keys)))}
    for row in connection.execute(select(documents).where(documents.c.run.in_(keys))):
        found[row.run].document = row
    for row in connection.execute(select(comparables).where(comparables.c.run.in_(keys))):
        found[row.run].comparable = bytes(row.data)
    m = select(measurements, series.c.hash).join_from(measurements, series, measurements.c.series == series.c.key)
    of_series = [summary_series.c[name].label(f"series_{name}") for name in _OF_SERIES]
    s = select(summaries, *of_series).join_from(summaries, summary_series, summaries.c.series == summary_series.c.key)
    for name, query in (
        ("results", select(results).where(results.c.run.in_(keys)).order_by(results.c.result)),
        ("labels", select(run_labels).where(run_labels.c.run.in_(keys))),
        ("measurements", m.where(measurements.c.run.in_(keys)).order_by(measurements.c.place)),
        ("summaries", s.where(summaries.c.run.in_(keys)).order_by(summaries.c.place)),
    ):
        for row in connection.execute(query):
            getattr(found[row.run], name).append(row)
    p = select(samples).where(samples.c.run.in_(keys)).order_by(samples.c.run, samples.c.piece)
    for row in connection.execute(p):
        found[row.run].arrays.append(bytes(row.data))
    return list(found.values())


def _wrong_with(parts: _Parts, aggregate: Aggregate | None) -> Iterator[str]:
    found: dict[Place, RunSamples] = {}
    for place, values in unpacked(parts.measurements, b"".join(parts.arrays)):
        if isinstance(values, DamagedSamples):
            yield f"{_at(parts.run.called, *place)}: {values}"
        else:
            found[place] = values
    expected = sum(row.size_bytes for row in parts.measurements)
    if (there := sum(map(len, parts.arrays))) != expected:
        yield f"run {parts.run.called}: its arrays have {there} bytes instead of {expected}"
    if parts.document is None:
        yield f"run {parts.run.called} has no document"
    if len(found) < len(parts.measurements) or parts.document is None:
        return
    try:
        run = unpack_document(parts.document.data, parts.document.encoding, found)
    except DamagedDocument as error:
        yield f"run {parts.run.called}: its document {error}"
        return
    yield from _not_derived(parts, run, aggregate)


def _not_derived(parts: _Parts, run: Run, aggregate: Aggregate | None) -> Iterator[str]:
    """Columns that disagree with the document and the samples."""
    packed = pack_run(run, parts.run.digest, aggregate, parts.run.project)
    for name in _DERIVED:
        if (there := getattr(parts.run, name)) != (should := packed.run[name]):
            yield f"run {parts.run.called}: its {name} is {_shown(there)}, but its document says {_shown(should)}"
    results_there = [(row.result, row.benchmark, row.status, row.reason) for row in parts.results]
    if results_there != [tuple(row.values()) for row in packed.results]:
        yield f"run {parts.run.called}: its benchmarks differ from its document"
    if {row.pair for row in parts.labels} != {row["pair"] for row in packed.labels}:
        yield f"run {parts.run.called}: its labels differ from its document"
    for row, should in zip(parts.measurements, packed.measurements, strict=True):
        same = row.hash == should["series"] and all(getattr(row, name) == should[name] for name in _OF_MEASUREMENT)
        if not same or (row.value is not None and should["value"] is not None and row.value != should["value"]):
            where = _at(parts.run.called, row.result, row.launch, row.measurement)
            yield f"{where}: its columns do not follow from its samples"
    yield from _wrong_summaries(parts, packed)
    should = packed.comparables[0]["data"] if packed.comparables else None
    if parts.run.summarized == SUMMARY_RULES and _comparable(parts.comparable) != _comparable(should):
        yield f"run {parts.run.called}: what comparisons read of it does not follow from its samples"


def _comparable(data: bytes | None) -> bytes | None:
    """Read and written again: numbers of one value may have been written in two ways."""
    found = None if data is None else unpack_comparable(data)
    return None if found is None else pack_comparable(found)


def _wrong_summaries(parts: _Parts, packed: PackedRun) -> Iterator[str]:
    """The summaries that differ from its report."""
    run = f"run {parts.run.called}"
    if parts.run.summarized != SUMMARY_RULES:
        yield f"{run}: its summaries are missing or out of date: benchwright store migrate"
        return
    if len(parts.summaries) != len(packed.summaries):
        yield f"{run}: it has {len(parts.summaries)} summaries instead of {len(packed.summaries)}"
        return
    for row, should in zip(parts.summaries, packed.summaries, strict=True):
        series = packed.summary_series[should["series"]]
        same = all(getattr(row, name) == should[name] for name in _OF_SUMMARY)
        if not same or not all(_equal(name, getattr(row, f"series_{name}"), series[name]) for name in _OF_SERIES):
            where = f"result {row.result}, {_shown(series['metric'])}"
            yield f"{run}, {where}: its summary does not follow from its samples"


def _equal(name: str, there: Any, should: Any) -> bool:
    """Series that differ only in the order of their labels are one."""
    same: bool = json.loads(there) == json.loads(should) if name in ("labels", "setting") else there == should
    return same


def _shown(value: object) -> str:
    return short(repr(value), 60)


def _at(run_id: str, result: int, launch: int, number: int) -> str:
    return f"run {run_id}, result {result}, launch {launch}, measurement {number}"

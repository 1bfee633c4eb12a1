"""Whether a store holds what it says it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from sqlalchemy import Connection, func, select, text

from benchwright.stores.run_document import ENCODING
from benchwright.stores.samples import COMPRESSED, PLAIN, DamagedSamples, Packed, unpack
from benchwright.stores.schema import baselines, documents, measurements, results, run_labels, runs, series

_MOST = 20  # problems of one kind
_STREAM_ROWS = 200
Check = Callable[[Connection], Iterator[str]]


def problems(connection: Connection) -> Iterator[str]:
    """What is wrong, in words, at most a few of each kind."""
    checks: list[Check] = [_orphans, _missing_parts, _lengths, _compressed_samples, _documents]
    if connection.dialect.name == "sqlite":
        checks.insert(0, _pages)
    for check in checks:
        found = check(connection)
        yield from islice(found, _MOST)
        if next(found, None) is not None:
            yield "… and more of the same kind"


def _pages(connection: Connection) -> Iterator[str]:
    for (line,) in connection.execute(text("PRAGMA integrity_check(50)")):
        if line != "ok":
            yield f"the file is damaged: {' '.join(str(line).split())}"


def _orphans(connection: Connection) -> Iterator[str]:
    for table in (documents, results, run_labels, measurements, baselines):
        lost = select(func.count()).select_from(table).where(table.c.run.not_in(select(runs.c.key)))
        if count := connection.execute(lost).scalar_one():
            yield f"{count} rows of {table.name} belong to no run"
    lost = select(func.count()).select_from(measurements).where(measurements.c.series.not_in(select(series.c.key)))
    if count := connection.execute(lost).scalar_one():
        yield f"{count} measurements belong to no series"


def _missing_parts(connection: Connection) -> Iterator[str]:
    without = select(runs.c.id).where(runs.c.key.not_in(select(documents.c.run)))
    for (run_id,) in connection.execute(without):
        yield f"run {run_id} has no document"
    for part, said in ((results, runs.c.benchmarks), (measurements, runs.c.measurements)):
        counted = select(part.c.run, func.count().label("there")).group_by(part.c.run).subquery()
        there = func.coalesce(counted.c.there, 0)
        query = select(runs.c.id, said, there).outerjoin_from(runs, counted, counted.c.run == runs.c.key)
        for run_id, should, is_there in connection.execute(query.where(there != said)):
            yield f"run {run_id} should have {should} {part.name}, but there are {is_there}"


def _lengths(connection: Connection) -> Iterator[str]:
    m = measurements.c
    wrong = (m.encoding == PLAIN) & (func.length(m.data) != 8 * (m.samples + m.warmup_samples))
    query = select(runs.c.id, m.result, m.launch, m.measurement).join_from(measurements, runs, m.run == runs.c.key)
    for run_id, result, launch, number in connection.execute(query.where(wrong)):
        yield _at(run_id, result, launch, number) + ": the array's length does not fit its number of samples"
    for run_id, result, launch, number in connection.execute(query.where(m.encoding.not_in((PLAIN, COMPRESSED)))):
        yield _at(run_id, result, launch, number) + ": the array's encoding is not known"


def _compressed_samples(connection: Connection) -> Iterator[str]:
    m = measurements.c
    columns = (runs.c.id, m.result, m.launch, m.measurement, m.samples + m.warmup_samples, m.data)
    query = select(*columns).join_from(measurements, runs, m.run == runs.c.key).where(m.encoding == COMPRESSED)
    for *place, count, data in connection.execution_options(yield_per=_STREAM_ROWS).execute(query):
        try:
            unpack(Packed(COMPRESSED, data), count)
        except DamagedSamples as error:
            yield f"{_at(*place)}: {error}"


def _documents(connection: Connection) -> Iterator[str]:
    import json
    import zlib

    query = select(runs.c.id, documents.c.encoding, documents.c.data).join_from(documents, runs)
    for run_id, encoding, data in connection.execution_options(yield_per=_STREAM_ROWS).execute(query):
        if encoding != ENCODING:
            yield f"run {run_id}: its document is encoded as '{encoding}', which is not known here"
            continue
        try:
            json.loads(zlib.decompress(data))
        except (zlib.error, ValueError) as error:
            yield f"run {run_id}: its document cannot be read: {error}"


def _at(run_id: str, result: int, launch: int, number: int) -> str:
    return f"run {run_id}, result {result}, launch {launch}, measurement {number}"

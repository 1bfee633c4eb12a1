"""Whether a store holds what it says it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, islice

from sqlalchemy import Connection, func, select, text

from benchwright.stores.run_document import ENCODING
from benchwright.stores.samples import COMPRESSED, PLAIN, DamagedSamples, Packed, unpack
from benchwright.stores.schema import (
    baselines,
    documents,
    measurements,
    results,
    run_labels,
    runs,
    samples,
    series,
)

_MOST = 20  # problems of one kind
_STREAM_ROWS = 200
Check = Callable[[Connection], Iterator[str]]


def problems(connection: Connection) -> Iterator[str]:
    """What is wrong, in words, at most a few of each kind."""
    checks: list[Check] = [_orphans, _missing_parts, _lengths, _pieces, _compressed_samples, _documents]
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
    for table in (documents, results, run_labels, measurements, samples, baselines):
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


def samples_of(connection: Connection, run: int) -> bytes:
    """The arrays of a run, one after the other."""
    query = select(samples.c.data).where(samples.c.run == run).order_by(samples.c.piece)
    return b"".join(map(bytes, connection.execute(query).scalars()))


def _lengths(connection: Connection) -> Iterator[str]:
    m = measurements.c
    wrong = (m.encoding == PLAIN) & (m.size_bytes != 8 * (m.samples + m.warmup_samples))
    query = select(runs.c.id, m.result, m.launch, m.measurement).join_from(measurements, runs, m.run == runs.c.key)
    for run_id, result, launch, number in connection.execute(query.where(wrong)):
        yield _at(run_id, result, launch, number) + ": the array's length does not fit its number of samples"
    for run_id, result, launch, number in connection.execute(query.where(m.encoding.not_in((PLAIN, COMPRESSED)))):
        yield _at(run_id, result, launch, number) + ": the array's encoding is not known"


def _pieces(connection: Connection) -> Iterator[str]:
    """Whether the pieces of a run are all there, in their order, and as long as its arrays."""
    m, p = measurements.c, samples.c
    said = select(m.run, func.sum(m.size_bytes).label("bytes")).group_by(m.run).subquery()
    held = (
        select(p.run, func.sum(func.length(p.data)).label("bytes"), func.count().label("pieces"), func.max(p.piece))
        .group_by(p.run)
        .subquery()
    )
    there, should = func.coalesce(held.c.bytes, 0), func.coalesce(said.c.bytes, 0)
    query = (
        select(runs.c.id, should, there)
        .outerjoin_from(runs, said, said.c.run == runs.c.key)
        .outerjoin(held, held.c.run == runs.c.key)
        .where((there != should) | (held.c.max + 1 != held.c.pieces))
    )
    for run_id, expected, found in connection.execute(query):
        yield f"run {run_id}: its arrays should take {expected} bytes in pieces, but there are {found}"


def _compressed_samples(connection: Connection) -> Iterator[str]:
    m = measurements.c
    columns = (runs.c.id, m.run, m.result, m.launch, m.measurement, m.samples + m.warmup_samples, m.size_bytes)
    query = select(*columns, m.encoding).join_from(measurements, runs, m.run == runs.c.key)
    concerned = query.where(m.run.in_(select(m.run).where(m.encoding == COMPRESSED))).order_by(m.run, m.place)
    for _, rows in groupby(connection.execute(concerned), key=lambda row: row[1]):
        arrays, start = b"", -1
        for run_id, run, result, launch, number, count, size, encoding in rows:
            if start < 0:
                arrays, start = samples_of(connection, run), 0
            start += size
            try:
                if encoding == COMPRESSED:
                    unpack(Packed(COMPRESSED, arrays[start - size : start]), count)
            except DamagedSamples as error:
                yield f"{_at(run_id, result, launch, number)}: {error}"


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

"""Writing a run to the tables. Everything is packed before the store is locked, so that other writers wait little."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Table, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from benchwright.analysis.comparison.comparable import ComparableRun, Sketch, comparable, sketch
from benchwright.core.aggregates import aggregate as core_aggregate
from benchwright.core.errors import InvalidInput
from benchwright.core.measurement import Measurement, in_order
from benchwright.core.provenance import CodeRevision, revision_words
from benchwright.core.run import Run
from benchwright.core.status import Status
from benchwright.core.stored_file import Unreadable
from benchwright.store import schema
from benchwright.store.base import Aggregate, StoreEntry, SummarySeries
from benchwright.store.run_document import (
    ENCODING,
    folder_bytes,
    hash_of,
    labels_json,
    measurements_of,
    pack_document,
    plain,
    unchanged_column,
)
from benchwright.store.run_query import label_pairs, started_s
from benchwright.store.samples import PIECE_BYTES, Packed, checksum, pack, pieces_of
from benchwright.store.summaries import (
    SUMMARY_RULES,
    commit_of,
    condensed,
    condensed_run,
    mapping_json,
    measured_code,
    pack_comparable,
    summaries_of,
    with_measurements,
)
from benchwright.store.transfer import ReceivedRun

Row = dict[str, Any]
_CHUNK = 500  # of values in one IN (…)
_PIECES_AT_ONCE = 1000  # 8 MB of them
_PARTS = (
    *(schema.documents, schema.results, schema.run_labels, schema.measurements, schema.samples),
    *(schema.summaries, schema.comparables, schema.logs),
)


class PackedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a run. Measurements and summaries name their series by its hash; the column `run` is filled in later."""

    run: Row
    document: Row
    results: list[Row]
    labels: list[Row]
    series: dict[str, Row]
    measurements: list[Row]
    samples: Iterable[Row]
    summary_series: dict[str, Row]
    summaries: list[Row]
    comparables: list[Row]  # one, or none
    logs: list[Row] = []


def pack_entry(entry: StoreEntry, aggregate: Aggregate | None, project: str) -> PackedRun:
    packed = pack_run(entry.run, entry.digest, aggregate, project)
    packed.logs.extend(_log_rows(entry.logs))
    if entry.annotation is not msgspec.UNSET:
        packed.run["annotation"] = None if entry.annotation is None else plain(entry.annotation)
    return packed


def pack_run(run: Run, digest: str, aggregate: Aggregate | None, project: str = schema.MAIN) -> PackedRun:
    arrays: list[bytes] = []

    def packed_one_by_one() -> Iterator[tuple[Measurement, Packed]]:
        for _, _, measurement in measurements_of(run):
            packed = pack(in_order(measurement))
            arrays.append(packed.data)
            yield measurement, packed

    measured = _measurement_rows(run, packed_one_by_one(), aggregate)
    samples = [{"piece": number, "data": data} for number, data in enumerate(pieces_of(arrays))]
    return _packed_run(run, digest, measured, pack_document(run), samples, folder_bytes(run), project)


def pack_received(received: ReceivedRun, aggregate: Aggregate | None, project: str) -> PackedRun:
    """The rows of a run that a client packed; DamagedDocument or DamagedSamples unless all of it fits together.

    Only one array is unpacked at a time; the pieces are read when they are written to the store.
    """
    run, head = received.run, received.head

    def checked_one_by_one() -> Iterator[tuple[Measurement, Packed]]:
        for (_, _, bare), array, data in zip(measurements_of(run), head.arrays, received.arrays(), strict=True):
            column, warm = unchanged_column(array, data), array.warmup_samples
            measured = column[warm:] if warm else column  # a long one is not copied
            yield replace(bare, samples=measured, warmup_samples=column[:warm]), Packed(array.encoding, data)

    measured = _measurement_rows(run, checked_one_by_one(), aggregate)
    pieces = received.pieces(PIECE_BYTES)
    packed = _packed_run(run, head.digest, measured, received.document, pieces, head.folder_bytes, project)
    packed.logs.extend(_log_rows(head.logs))
    if head.annotation is not msgspec.UNSET:
        packed.run["annotation"] = None if head.annotation is None else plain(head.annotation)
    return packed


class _Measured(NamedTuple):
    """The rows of `measurements`, their series, the measurements without their samples, and what is left of those."""

    rows: list[Row]
    series: dict[str, Row]
    condensed: list[Measurement]
    sketches: dict[int, Sketch]  # by the identity of the measurement without samples


def _measurement_rows(run: Run, packed: Iterable[tuple[Measurement, Packed]], aggregate: Aggregate | None) -> _Measured:
    series: dict[str, Row] = {}
    rows: list[Row] = []
    kept: list[Measurement] = []
    sketches: dict[int, Sketch] = {}
    for place, (((r, x, m), launch, _), (measurement, array)) in enumerate(
        zip(measurements_of(run), packed, strict=True)
    ):
        value = _launch_value(measurement, aggregate or core_aggregate, run.workers)
        kept.append(condensed(measurement, value))
        sketches[id(kept[-1])] = sketch(measurement)
        rows.append(
            {
                "place": place,
                "result": r,
                "launch": x,
                "measurement": m,
                "series": _series_of(run.results[r].benchmark.name, measurement, series),
                "counted": launch.counts,
                # SQLite has no NaN.
                "value": None if aggregate is None or value is None or math.isnan(value) else value,
                "warmup_samples": len(measurement.warmup_samples),
                "samples": len(measurement.samples),
                "size_bytes": len(array.data),
                "encoding": array.encoding,
                "checksum": checksum(array.data),
            }
        )
    return _Measured(rows, series, kept, sketches)


def _packed_run(
    run: Run,
    digest: str,
    measured: _Measured,
    document: bytes,
    samples: Iterable[Row],
    beside_bytes: int,
    project: str,
) -> PackedRun:
    size_bytes = len(document) + sum(row["size_bytes"] for row in measured.rows) + beside_bytes
    bare = with_measurements(run, measured.condensed)
    summary_series, summaries = summary_rows(bare, project)
    return PackedRun(
        run=_run_row(run, digest, len(measured.rows), size_bytes) | {"project": project},
        document={"encoding": ENCODING, "data": document},
        results=[_result_row(i, run) for i in range(len(run.results))],
        labels=list(_label_rows(run)),
        series=measured.series,
        measurements=measured.rows,
        samples=samples,
        summary_series=summary_series,
        summaries=summaries,
        comparables=_comparable_rows(comparable(bare, sketch_of=lambda m: measured.sketches[id(m)])),
    )


def _comparable_rows(run: ComparableRun) -> list[Row]:
    data = pack_comparable(run)
    return [] if data is None else [{"data": data}]


def summary_rows(run: Run, project: str) -> tuple[dict[str, Row], list[Row]]:
    """The series and the summaries of a condensed run."""
    series: dict[str, Row] = {}
    rows: list[Row] = []
    for found in summaries_of(run, project):
        if found.series.id not in series:
            series[found.series.id] = _summary_series_row(found.series) | {"project": project}
        p = found.point
        rows.append(
            {
                "place": p.place,
                "result": p.result,
                "series": found.series.id,
                "started_s": p.started_s,
                "value": p.value,
                "low": p.low,
                "high": p.high,
                "widened": p.widened,
                "launches": p.launches,
                "headline": p.headline,
                "revision": found.revision,
                "doubt": p.doubt,
            }
        )
    return series, rows


def _summary_series_row(series: SummarySeries) -> Row:
    return {
        "hash": series.id,
        "benchmark": series.benchmark,
        "pair": series.pair,
        "metric": series.metric,
        "labels": mapping_json(series.labels),
        "unit": series.unit,
        "direction": series.direction.value,
        "source": series.source,
        "machine": series.machine,
        "host": series.host,
        "setting": mapping_json(series.setting),
    }


def put_summaries(connection: Connection, key: int, run: Run, project: str) -> None:
    """Writes the summaries and the comparable of a stored run, in place of any that it has."""
    series, rows = summary_rows(condensed_run(run), project)
    for table in (schema.summaries, schema.comparables):
        connection.execute(delete(table).where(table.c.run == key))
    for row in _comparable_rows(comparable(run)):
        connection.execute(insert(schema.comparables).values(run=key, **row))
    keys = _series_keys(connection, schema.summary_series, series)
    if rows:
        named = [{"run": key, **row, "series": keys[row["series"]]} for row in rows]
        connection.execute(insert(schema.summaries), named)
    values = _of_code(measured_code(run.revisions)) | {"summarized": SUMMARY_RULES}
    connection.execute(update(schema.runs).where(schema.runs.c.key == key).values(**values))


def put_runs(connection: Connection, packed: Sequence[PackedRun]) -> None:
    """Inserts or replaces the runs. Their baselines stay, and so do annotations unless a new one is given.

    InvalidInput if one of them is in another project.
    """
    _refuse_others(connection, packed)
    keys = _upserted(connection, [each.run for each in packed])
    for table in _PARTS:
        connection.execute(delete(table).where(table.c.run.in_(keys.values())))
    series = _series_keys(
        connection, schema.series, {hashed: row for each in packed for hashed, row in each.series.items()}
    )
    summary_series = _series_keys(
        connection,
        schema.summary_series,
        {hashed: row for each in packed for hashed, row in each.summary_series.items()},
    )
    parts: dict[Table, list[Row]] = {table: [] for table in _PARTS}
    for each in packed:
        key = keys[each.run["id"]]
        parts[schema.documents].append({"run": key, **each.document})
        parts[schema.results] += [{"run": key, **row} for row in each.results]
        parts[schema.logs] += [{"run": key, **row} for row in each.logs]
        parts[schema.comparables] += [{"run": key, **row} for row in each.comparables]
        parts[schema.run_labels] += [{"run": key, **row} for row in each.labels]
        parts[schema.measurements] += [
            {"run": key, **row, "series": series[row["series"]]} for row in each.measurements
        ]
        parts[schema.summaries] += [
            {"run": key, **row, "series": summary_series[row["series"]]} for row in each.summaries
        ]
    for table, rows in parts.items():
        if rows:
            connection.execute(insert(table), rows)
    for each in packed:
        pieces = iter(each.samples)
        while some := [{"run": keys[each.run["id"]], **row} for row in islice(pieces, _PIECES_AT_ONCE)]:
            connection.execute(insert(schema.samples), some)


def _refuse_others(connection: Connection, packed: Sequence[PackedRun]) -> None:
    r, own = schema.runs.c, {each.run["id"]: each.run["project"] for each in packed}
    for uid, project in connection.execute(select(r.id, r.project).where(r.id.in_(own))):
        if project != own[uid]:
            remedy = "a run belongs to one project: send it with a token of that one"
            raise InvalidInput(f"the run {uid} is in another project", where="the store", remedy=remedy)


def _upserted(connection: Connection, rows: Sequence[Row]) -> dict[str, int]:
    """The key of each run, by its id. In one order everywhere: two writers never wait for each other in a circle."""
    r = schema.runs.c
    ordered = sorted(rows, key=lambda row: str(row["id"]))
    for columns, alike in groupby(ordered, key=list):  # some bring an annotation
        statement = insert_or(connection, schema.runs)
        changed = {name: statement.excluded[name] for name in columns if name != "id"}
        connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=changed), list(alike))
    return dict(connection.execute(select(r.id, r.key).where(r.id.in_([row["id"] for row in rows]))).all())


def _series_keys(connection: Connection, table: Table, rows: dict[str, Row]) -> dict[str, int]:
    found = dict(_known_series(connection, table, rows))
    # In one order everywhere: two writers that insert the same ones never wait for each other in a circle.
    missing = [rows[hashed] for hashed in sorted(rows.keys() - found.keys())]
    if missing:
        connection.execute(insert_or(connection, table).on_conflict_do_nothing(index_elements=["hash"]), missing)
        found.update(_known_series(connection, table, [row["hash"] for row in missing]))
    return found


def _known_series(connection: Connection, table: Table, hashes: Iterable[str]) -> Iterator[tuple[str, int]]:
    wanted = list(hashes)
    c = table.c
    for start in range(0, len(wanted), _CHUNK):
        query = select(c.hash, c.key).where(c.hash.in_(wanted[start : start + _CHUNK]))
        yield from connection.execute(query)


def insert_or(connection: Connection, table: Table) -> Any:
    """An INSERT that knows ON CONFLICT, which both databases write alike but SQLAlchemy keeps apart."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def _run_row(run: Run, digest: str, measurements: int, size_bytes: int) -> Row:
    return {
        "id": plain(run.unique_id),
        "called": plain(run.id),
        "digest": plain(digest),
        "name": plain(run.name),
        "started": plain(run.started),
        "started_s": started_s(run.started),
        "ended": None if run.ended is None else plain(run.ended),
        "status": run.status.value,
        "machine": run.machine.fingerprint,
        "host": plain(run.machine.hostname),
        "folder": plain(run.folder),
        "labels": labels_json(run.labels),
        "revision": plain(revision_words(run.revisions)),
        **_of_code(measured_code(run.revisions)),
        "summarized": SUMMARY_RULES,
        "benchmarks": len(run.results),
        "failed": sum(r.status is Status.FAILED for r in run.results),
        "measurements": measurements,
        "size_bytes": size_bytes,
    }


def _of_code(code: CodeRevision | None) -> Row:
    time = None if code is None or code.time is None else plain(code.time)
    return {"measured_commit": commit_of(code), "commit_time": time}


def _result_row(number: int, run: Run) -> Row:
    result = run.results[number]
    return {
        "result": number,
        "benchmark": plain(result.benchmark.name),
        "status": result.status.value,
        "reason": None if result.reason is None else result.reason.value,
    }


def _label_rows(run: Run) -> Iterator[Row]:
    for label, value in label_pairs(run.labels, [r.benchmark for r in run.results]):
        yield {"pair": hash_of(label, value), "label": plain(label), "value": plain(value)}


def _log_rows(logs: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    for number, (job, lines) in enumerate(logs.items()):
        text = "\n".join(map(plain, lines))
        yield {"launch": number, "job": plain(job), "lines": zlib.compress(text.encode(), level=1)}


def logs_of(connection: Connection, run: int) -> dict[str, list[str]]:
    """Unreadable if they are damaged."""
    rows = connection.execute(select(schema.logs).where(schema.logs.c.run == run).order_by(schema.logs.c.launch))
    try:
        return {row.job: zlib.decompress(row.lines).decode().split("\n") for row in rows}
    except (zlib.error, ValueError) as error:
        raise Unreadable(f"its logs cannot be read: {error}") from None


def _series_of(benchmark: str, m: Measurement, series: dict[str, Row]) -> str:
    """The hash of the measurement's series, which is added to `series`."""
    labels = tuple(sorted(m.labels.items()))
    row = _series_row(benchmark, m.metric, labels, m.unit, m.direction.value, m.source, m.aggregate)
    hashed: str = row["hash"]
    series[hashed] = row
    return hashed


@lru_cache(maxsize=4096)  # a rebuild meets the same series again and again; the rows are never changed
def _series_row(
    benchmark: str,
    metric: str,
    labels: tuple[tuple[str, str], ...],
    unit: str | None,
    direction: str,
    source: str,
    aggregate: str,
) -> Row:
    """Equal for measurements of the same thing, read in the same way."""
    return {
        "hash": hash_of(benchmark, metric, labels, unit, direction, source, aggregate),
        "benchmark": plain(benchmark),
        "metric": plain(metric),
        "labels": labels_json(dict(labels)),
        "unit": None if unit is None else plain(unit),
        "direction": direction,
        "source": plain(source),
        "aggregate": plain(aggregate),
    }


def _launch_value(measurement: Measurement, aggregate: Aggregate, workers: int | None) -> float | None:
    """The launch's one number; None if there is none."""
    if measurement.value is not None:
        return measurement.value
    try:
        return aggregate(measurement.aggregate, measurement.samples, workers)
    except (ValueError, ArithmeticError):
        return None

"""A store as its first version was, filled as that version filled it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from benchwright.core.aggregates import aggregate
from benchwright.core.run import Run
from benchwright.store.connection import connect, read_url, set_up_file, writing
from benchwright.store.ingest import pack_run
from benchwright.store.migrations import upgrade

LATER = ("called", "revision", "measured_commit", "commit_time", "summarized", "project")  # columns


def make_first_store(url: str, runs: Sequence[Run]) -> None:
    """Version 0001: every array stands in the row of its measurement. The last run has an annotation and a baseline."""
    database = read_url(url)
    engine = connect(database, create=True)
    if database.path is not None:
        set_up_file(engine)
    with writing(engine, database.where) as connection:
        upgrade(connection, to="0001")
        series: dict[str, int] = {}
        for key, run in enumerate(runs, 1):
            packed = pack_run(run, "1", aggregate)
            row = {name: value for name, value in packed.run.items() if name not in LATER}
            insert(connection, "runs", [{"key": key, "annotation": "said" if run is runs[-1] else None, **row}])
            insert(connection, "documents", [{"run": key, **packed.document}])
            insert(connection, "results", [{"run": key, **row} for row in packed.results])
            insert(connection, "run_labels", [{"run": key, **row} for row in packed.labels])
            for hashed, row in packed.series.items():
                if hashed not in series:
                    series[hashed] = len(series) + 1
                    insert(connection, "series", [{"key": series[hashed], **row}])
            arrays, at = b"".join(piece["data"] for piece in packed.samples), 0
            for row in packed.measurements:
                size = row["size_bytes"]
                old = {name: value for name, value in row.items() if name not in ("place", "size_bytes", "checksum")}
                old |= {"run": key, "series": series[row["series"]], "data": arrays[at : at + size]}
                insert(connection, "measurements", [old])
                at += size
        insert(connection, "baselines", [{"name": "main", "run": len(runs)}])
    engine.dispose()


def insert(connection: sa.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(sa.table(table, *(sa.column(name) for name in rows[0]))), rows)

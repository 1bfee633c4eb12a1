"""The long table as Parquet, by way of duckdb (extra `analytics`)."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchwright.core.errors import BenchwrightError
from benchwright.core.run import Run
from benchwright.report.export.exported_file import exported_file
from benchwright.report.export.long_table import Series, series_of

_TYPES = {"launch": "INTEGER", "values": "DOUBLE[]"}  # the others are text
_MOST_AT_ONCE = 10_000


def export_parquet(runs: Sequence[Run], path: Path) -> None:
    """Writes the columns of the long table; `launch` INTEGER, `index` BIGINT, `value` DOUBLE, the others VARCHAR."""
    duckdb = _duckdb()
    try:
        _write(duckdb, runs, path)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise BenchwrightError(f"{path}: duckdb could not write it: {reason}; choose another place") from error


def _write(duckdb: Any, runs: Sequence[Run], path: Path) -> None:
    columns = [f'"{name}" {_TYPES.get(name, "VARCHAR")}' for name in Series._fields]
    same = ", ".join(f'"{name}"' for name in Series._fields[:-1])
    with exported_file(path) as aside, duckdb.connect() as database:
        database.execute(f"CREATE TABLE series ({', '.join(columns)})")
        for chunk in _chunks(series_of(runs)):
            _insert(database, chunk)
        target = aside.replace("'", "''")
        # A series is stored as one row with a list; unnesting both columns side by side keeps its order.
        database.execute(
            f'COPY (SELECT {same}, unnest(range(len("values"))) AS "index", unnest("values") AS value FROM series)'  # noqa: S608
            f" TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )


def _insert(database: Any, chunk: Sequence[Series]) -> None:
    """One statement for many series: a statement for each would take a millisecond each."""
    lists = [f"unnest(?::{_TYPES.get(name, 'VARCHAR')}[])" for name in Series._fields]
    cells = [[_storable(cell) for cell in column] for column in zip(*chunk, strict=True)]
    database.execute(f"INSERT INTO series SELECT {', '.join(lists)}", cells)


def _storable(cell: Any) -> object:
    if isinstance(cell, str) and not cell.isascii():
        return cell.encode("utf-8", "replace").decode()
    return list(cell) if isinstance(cell, tuple | array) else cell


def _chunks(series: Iterator[Series]) -> Iterator[list[Series]]:
    while chunk := list(itertools.islice(series, _MOST_AT_ONCE)):
        yield chunk


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise BenchwrightError(
            "writing Parquet needs duckdb, which is not installed; pip install 'benchwright[analytics]'"
        ) from error
    return duckdb

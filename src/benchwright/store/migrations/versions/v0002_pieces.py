"""Samples move to a separate table, in pieces.

An array of a few hundred bytes in its measurement's row left a tenth of each PostgreSQL page empty, and larger ones were
cut into many small rows. Now all arrays of a run are concatenated and cut into pieces that fill a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_PIECE_BYTES = 8120
_COPIED = (
    "run",
    "result",
    "launch",
    "measurement",
    "series",
    "counted",
    "value",
    "warmup_samples",
    "samples",
    "encoding",
)


def upgrade() -> None:
    _set_old_aside()
    _measurements()
    _samples()
    _move()
    op.drop_table("old_measurements")


def _of_run() -> sa.Column[int]:
    return sa.Column("run", sa.Integer, sa.ForeignKey("runs.key", ondelete="CASCADE"), nullable=False, primary_key=True)


def _set_old_aside() -> None:
    op.drop_index("measurements_by_series", "measurements")
    op.rename_table("measurements", "old_measurements")
    if op.get_bind().dialect.name == "postgresql":
        for kind in ("pkey", "run_fkey", "series_fkey"):
            op.execute(f"ALTER TABLE old_measurements RENAME CONSTRAINT measurements_{kind} TO old_measurements_{kind}")


def _measurements() -> None:
    # In this order PostgreSQL needs no padding between them.
    op.create_table(
        "measurements",
        _of_run(),
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("value", sa.Double),
        sa.Column("result", sa.Integer, nullable=False),
        sa.Column("launch", sa.Integer, nullable=False),
        sa.Column("measurement", sa.Integer, nullable=False),
        sa.Column("series", sa.Integer, sa.ForeignKey("series.key"), nullable=False),
        sa.Column("warmup_samples", sa.Integer, nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("counted", sa.Boolean, nullable=False),
        sa.Column("encoding", sa.Text, nullable=False),
    )
    op.create_index("measurements_by_series", "measurements", ["series", "run"])


def _samples() -> None:
    op.create_table(
        "samples",
        _of_run(),
        sa.Column("piece", sa.Integer, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    # Stored in the row itself: PostgreSQL's own splitting would take 4 % more. Its pages can be smaller than usual.
    whole_page = int(connection.execute(sa.text("SHOW block_size")).scalar_one()) > _PIECE_BYTES
    op.execute(f"ALTER TABLE samples ALTER COLUMN data SET STORAGE {'PLAIN' if whole_page else 'EXTERNAL'}")


def _move() -> None:
    """Run by run, so that only one is in memory at a time."""
    connection = op.get_bind()
    old = _table("old_measurements", *_COPIED, "data")
    new = _table("measurements", *_COPIED, "place", "size_bytes")
    samples = _table("samples", "run", "piece", "data")
    for run in connection.execute(sa.select(old.c.run).distinct().order_by(old.c.run)).scalars().all():
        order = (old.c.result, old.c.launch, old.c.measurement)
        rows = connection.execute(sa.select(old).where(old.c.run == run).order_by(*order)).mappings().all()
        connection.execute(sa.insert(new), [_without_data(place, row) for place, row in enumerate(rows)])
        pieces = list(_pieces(run, b"".join(bytes(row["data"]) for row in rows)))
        if pieces:
            connection.execute(sa.insert(samples), pieces)


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *(sa.column(column) for column in columns))


def _without_data(place: int, row: Any) -> dict[str, Any]:
    return {name: row[name] for name in _COPIED} | {"place": place, "size_bytes": len(row["data"])}


def _pieces(run: int, data: bytes) -> Iterator[dict[str, Any]]:
    for number, start in enumerate(range(0, len(data), _PIECE_BYTES)):
        yield {"run": run, "piece": number, "data": data[start : start + _PIECE_BYTES]}

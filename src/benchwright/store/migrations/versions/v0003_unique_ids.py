"""Runs get a unique id instead of being identified by their folder's name, and arrays get a checksum.

The column `id` becomes that id; for older runs it still is the folder's name. The name moves to a separate column,
since runs of two base folders may share one.
"""

from __future__ import annotations

import zlib

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("runs", sa.Column("called", sa.Text, nullable=False, server_default=""))
    op.create_index("runs_by_called", "runs", ["called"], postgresql_using="hash")
    op.add_column("measurements", sa.Column("checksum", sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE runs SET called = id")
    _fill_checksums()


def _fill_checksums() -> None:
    """Run by run, so that only one is in memory at a time."""
    connection = op.get_bind()
    measurements = _table("measurements", "run", "place", "size_bytes", "checksum")
    samples = _table("samples", "run", "piece", "data")
    m = measurements.c
    change = (
        sa.update(measurements)
        .where(m.run == sa.bindparam("of_run"), m.place == sa.bindparam("at"))
        .values(checksum=sa.bindparam("sum"))
    )
    for run in connection.execute(sa.select(m.run).distinct().order_by(m.run)).scalars().all():
        pieces = sa.select(samples.c.data).where(samples.c.run == run).order_by(samples.c.piece)
        arrays = b"".join(bytes(data) for data in connection.execute(pieces).scalars())
        sizes = sa.select(m.place, m.size_bytes).where(m.run == run).order_by(m.place)
        rows, start = [], 0
        for place, size in connection.execute(sizes).all():
            rows.append({"of_run": run, "at": place, "sum": _checksum(arrays[start : start + size])})
            start += size
        connection.execute(change, rows)


def _checksum(data: bytes) -> int:
    """CRC-32 as a signed number, which takes four bytes in every database."""
    found = zlib.crc32(data)
    return found - (1 << 32) if found >> 31 else found


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *(sa.column(column) for column in columns))

"""Summaries of the runs, so that a history reads no samples, and the last lines of failed launches.

The tables are made here; the code that stores runs fills them, from the samples that are in the store. Logs of older runs are not in it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("runs", sa.Column("measured_commit", sa.Text))
    op.add_column("runs", sa.Column("commit_time", sa.Text))
    op.add_column("runs", sa.Column("summarized", sa.Integer, nullable=False, server_default="0"))
    _series()
    _summaries()
    op.create_table(
        "logs",
        _of_run(primary_key=True),
        sa.Column("launch", sa.Integer, primary_key=True),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("lines", sa.LargeBinary, nullable=False),
    )


def _series() -> None:
    texts = ("benchmark", "pair", "metric", "labels", "direction", "source", "machine", "host", "setting")
    op.create_table(
        "summary_series",
        sa.Column("key", sa.Integer, primary_key=True),
        sa.Column("hash", sa.String(32), nullable=False, unique=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in texts),
        sa.Column("unit", sa.Text),
    )
    op.create_index("summary_series_by_benchmark", "summary_series", ["benchmark"], postgresql_using="hash")


def _summaries() -> None:
    op.create_table(
        "summaries",
        sa.Column("key", sa.Integer, primary_key=True),
        _of_run(),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("result", sa.Integer, nullable=False),
        sa.Column("series", sa.Integer, sa.ForeignKey("summary_series.key"), nullable=False),
        sa.Column("started_s", sa.Double, nullable=False),
        *(sa.Column(name, sa.Double) for name in ("value", "low", "high")),
        sa.Column("widened", sa.Double, nullable=False),
        sa.Column("launches", sa.Integer, nullable=False),
        sa.Column("headline", sa.Boolean, nullable=False),
        sa.Column("revision", sa.Text),
        sa.Column("doubt", sa.Text),
    )
    op.create_index("summaries_by_run", "summaries", ["run"])
    op.create_index("summaries_by_series", "summaries", ["series", "started_s", "value"])


def _of_run(*, primary_key: bool = False) -> sa.Column[int]:
    key = sa.ForeignKey("runs.key", ondelete="CASCADE")
    return sa.Column("run", sa.Integer, key, nullable=False, primary_key=primary_key)

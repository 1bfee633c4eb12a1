"""The first version.

A migration never changes after its release: it names its tables itself instead of taking them from `schema.py`.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _runs()
    _parts_of_runs()
    _measurements()
    op.create_table(
        "baselines",
        sa.Column("key", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        _of_run(),
        sa.UniqueConstraint("name"),
    )
    op.create_index("baselines_by_run", "baselines", ["run"])


def _of_run(primary_key: bool = False) -> sa.Column[int]:
    target = sa.ForeignKey("runs.key", ondelete="CASCADE")
    return sa.Column("run", sa.Integer, target, nullable=False, primary_key=primary_key)


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("key", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("started", sa.Text, nullable=False),
        sa.Column("started_s", sa.Double, nullable=False),
        sa.Column("ended", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("benchmarks", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("measurements", sa.Integer, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("annotation", sa.Text),
    )
    op.create_index("runs_by_start", "runs", ["started_s", "key"])
    op.create_index("runs_by_name", "runs", ["name"])
    op.create_index("runs_by_machine", "runs", ["machine"])


def _parts_of_runs() -> None:
    op.create_table(
        "documents",
        _of_run(primary_key=True),
        sa.Column("encoding", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "results",
        _of_run(primary_key=True),
        sa.Column("result", sa.Integer, primary_key=True),
        sa.Column("benchmark", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
    )
    op.create_index("results_by_benchmark", "results", ["benchmark"], postgresql_using="hash")
    op.create_table(
        "run_labels",
        sa.Column("pair", sa.String(32), primary_key=True),
        _of_run(primary_key=True),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_index("run_labels_by_run", "run_labels", ["run"])


def _measurements() -> None:
    op.create_table(
        "series",
        sa.Column("key", sa.Integer, primary_key=True),
        sa.Column("hash", sa.String(32), nullable=False, unique=True),
        sa.Column("benchmark", sa.Text, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("unit", sa.Text),
        sa.Column("direction", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("aggregate", sa.Text, nullable=False),
    )
    op.create_index("series_by_benchmark", "series", ["benchmark"], postgresql_using="hash")
    op.create_table(
        "measurements",
        _of_run(primary_key=True),
        sa.Column("result", sa.Integer, primary_key=True),
        sa.Column("launch", sa.Integer, primary_key=True),
        sa.Column("measurement", sa.Integer, primary_key=True),
        sa.Column("series", sa.Integer, sa.ForeignKey("series.key"), nullable=False),
        sa.Column("counted", sa.Boolean, nullable=False),
        sa.Column("value", sa.Double),
        sa.Column("warmup_samples", sa.Integer, nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("encoding", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index("measurements_by_series", "measurements", ["series", "run"])
    if op.get_bind().dialect.name == "postgresql":
        # The arrays are compressed already where that helps; PostgreSQL would try again.
        for table in ("measurements", "documents"):
            op.execute(f"ALTER TABLE {table} ALTER COLUMN data SET STORAGE EXTERNAL")

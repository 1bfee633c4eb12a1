"""Runs belong to a project, and so do their series and baselines; existing ones belong to `main`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    for table in ("runs", "summary_series"):
        op.add_column(table, _project())
    op.drop_index("runs_by_start", table_name="runs")
    op.create_index("runs_by_start", "runs", ["project", "started_s", "key"])
    op.create_index("runs_by_host", "runs", ["project", "host", "started_s"])
    # The name alone was unique, which SQLite cannot take back.
    op.rename_table("baselines", "baselines_before")
    op.drop_index("baselines_by_run", table_name="baselines_before")
    op.create_table(
        "baselines",
        sa.Column("key", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.key", ondelete="CASCADE"), nullable=False),
        _project(),
    )
    op.execute("INSERT INTO baselines (name, run) SELECT name, run FROM baselines_before ORDER BY key")
    op.drop_table("baselines_before")
    op.create_index("baselines_by_run", "baselines", ["run"])
    op.create_index("baselines_by_name", "baselines", ["project", "name"], unique=True)


def _project() -> sa.Column[str]:
    return sa.Column("project", sa.Text, nullable=False, server_default="main")

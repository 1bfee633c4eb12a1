"""Runs get the revision of the code that was measured, to be listed and searched. Older runs have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("runs", sa.Column("revision", sa.Text, nullable=False, server_default=""))

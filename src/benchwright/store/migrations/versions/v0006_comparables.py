"""The numbers of every launch beside the summaries, so that comparing two runs reads no samples.

The table is made here; the code that stores runs fills it, from the samples that are in the store.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    key = sa.ForeignKey("runs.key", ondelete="CASCADE")
    op.create_table(
        "comparables",
        sa.Column("run", sa.Integer, key, nullable=False, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )

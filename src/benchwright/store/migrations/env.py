"""Alembic runs this file. The connection, with its transaction, comes from `upgrade`."""

from __future__ import annotations

from alembic import context

from benchwright.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite changes a column by making the table anew
)
with context.begin_transaction():
    context.run_migrations()

"""Run by Alembic. `upgrade` provides the connection and its transaction."""

from __future__ import annotations

from alembic import context

from benchwright.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite changes a column by rebuilding the table
)
with context.begin_transaction():
    context.run_migrations()

"""Upgrades a store from version to version. Alembic runs the files of `versions`; no alembic.ini is needed.

For a new version: add a file to `versions` with the next number as `revision` and the last one as `down_revision`,
update the tables in `schema.py`, and set `schema.VERSION`.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent
_LOCK = 0x62656E6368  # any number that no other program locks: "bench"


def load_alembic() -> None:
    """Slow on a busy machine: before the store is locked, or others wait for it."""
    from alembic import command, config  # noqa: F401


def upgrade(connection: Connection, *, scripts: Path = SCRIPTS, to: str = "head") -> None:
    """Upgrades the store to the newest version (or `to`) inside the connection's transaction."""
    from alembic import command, config

    if connection.dialect.name == "postgresql":
        # Of two processes that open a new store, the second waits and then finds it made.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    made = config.Config()
    made.set_main_option("script_location", str(scripts).replace("%", "%%"))
    made.set_main_option("path_separator", "os")
    made.attributes["connection"] = connection
    command.upgrade(made, to)

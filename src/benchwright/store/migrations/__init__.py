"""How a store of one version becomes one of the next. Alembic runs the files of `versions`; no alembic.ini is needed.

A new version: one file in `versions` whose `revision` is the next number and whose `down_revision` is the last one,
the tables of `schema.py` as they are afterwards, and `schema.VERSION`.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent
_LOCK = 0x62656E6368  # any number that no other program locks: "bench"


def upgrade(connection: Connection, *, scripts: Path = SCRIPTS, to: str = "head") -> None:
    """Brings the store to the newest version (or `to`) inside the connection's transaction; does nothing to one that has it."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        # Of two processes that open a new store the second waits, and then finds it made.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)

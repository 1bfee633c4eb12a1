"""`server.db` in the base folder: tokens, sessions, what was written by whom, and what people say about changes.

It is no part of the store: whoever can read the database of results is not let in by it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from benchwright.core.errors import StoreTrouble

FILE = "server.db"
_VERSION = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
 name TEXT PRIMARY KEY, scope TEXT NOT NULL, sha256 TEXT NOT NULL UNIQUE, created REAL NOT NULL, expires REAL, used REAL);
CREATE TABLE IF NOT EXISTS sessions (
 sha256 TEXT PRIMARY KEY, token TEXT NOT NULL REFERENCES tokens(name) ON DELETE CASCADE, csrf TEXT NOT NULL, expires REAL NOT NULL);
CREATE TABLE IF NOT EXISTS audit (key INTEGER PRIMARY KEY, at REAL NOT NULL, token TEXT NOT NULL, action TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS changes (
 key INTEGER PRIMARY KEY, series TEXT NOT NULL, benchmark TEXT NOT NULL, metric TEXT NOT NULL, host TEXT NOT NULL, verdict TEXT NOT NULL,
 first_s REAL NOT NULL, last_s REAL NOT NULL, body BLOB NOT NULL, state TEXT NOT NULL DEFAULT 'new', owner TEXT NOT NULL DEFAULT '',
 note TEXT NOT NULL DEFAULT '', told INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS changes_by_series ON changes (series);
CREATE INDEX IF NOT EXISTS changes_by_time ON changes (last_s);
CREATE TABLE IF NOT EXISTS examined (series TEXT PRIMARY KEY, points TEXT NOT NULL);
"""


class ServerFile:
    """Several processes may use it at once."""

    def __init__(self, base: Path) -> None:
        self.path = base / FILE

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction; StoreTrouble if the file cannot be used."""
        try:
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
            database = sqlite3.connect(self.path, timeout=10)
            try:
                database.execute("PRAGMA foreign_keys = ON")
                with database:
                    _bring_up_to_date(database)
                    yield database
            finally:
                database.close()
        except sqlite3.IntegrityError:
            raise
        except (OSError, sqlite3.Error) as error:
            remedy = "check that the file is yours and the disk not full, or move it away and make new tokens"
            raise StoreTrouble(f"the tokens cannot be used: {error}", where=str(self.path), remedy=remedy) from error


def now_s() -> float:
    return datetime.now(UTC).timestamp()


def _bring_up_to_date(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA user_version").fetchone()[0] >= _VERSION:
        return
    database.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, _TABLES.split(";")):
        database.execute(statement)
    for table in ("tokens", "audit", "changes"):
        if "project" not in [row[1] for row in database.execute(f"PRAGMA table_info({table})")]:
            database.execute(f"ALTER TABLE {table} ADD COLUMN project TEXT NOT NULL DEFAULT 'main'")
    database.execute(f"PRAGMA user_version = {_VERSION}")
    database.commit()

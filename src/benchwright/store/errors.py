"""Database errors, as messages a user can act on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from benchwright.core.errors import StoreTrouble

_NOTHING_LOST = "no result is lost, the run folders have them all"
_REBUILD = "rebuild it from the run folders: benchwright store rebuild"
_NEW_DATABASE = "name an empty database: benchwright store rebuild --store postgresql://…"
_INGEST_LATER = f"try again later with 'benchwright import'; {_NOTHING_LOST}"
_MAKE_ROOM = f"free some space, then 'benchwright import'; {_NOTHING_LOST}"
_SERVER = "check that the server runs and the address is right, or choose another store with --store"
_WRITABLE = "make it writable, or choose another store with --store"

# Prefixes of SQLite's error names and PostgreSQL's codes; the longest match counts.
_SQLITE = {
    "SQLITE_BUSY": ("is locked: another process is writing to it", _INGEST_LATER),
    "SQLITE_LOCKED": ("is locked: another process is writing to it", _INGEST_LATER),
    "SQLITE_READONLY": ("cannot be written: it is read-only", _WRITABLE),
    "SQLITE_READONLY_DBMOVED": ("is gone: its file was moved or removed", "open it again; " + _NOTHING_LOST),
    "SQLITE_FULL": ("cannot be written: the disk is full", _MAKE_ROOM),
    "SQLITE_IOERR": ("cannot be read or written: the disk failed or is full", _MAKE_ROOM),
    "SQLITE_CANTOPEN": ("cannot be opened: its folder is gone or not accessible", _WRITABLE),
    "SQLITE_PERM": ("cannot be opened: permission denied", _WRITABLE),
    "SQLITE_AUTH": ("cannot be opened: permission denied", _WRITABLE),
    "SQLITE_NOTADB": ("is not a store of benchwright", "choose another file with --store"),
    "SQLITE_CORRUPT": ("is damaged", _REBUILD),
    "SQLITE_TOOBIG": ("cannot hold that much at once", _NOTHING_LOST),
}
_POSTGRESQL = {
    "08": ("cannot be reached", _SERVER),
    "25006": ("cannot be written: it is read-only", _WRITABLE),
    "28": ("refuses this user or password", "give the right ones in the URL, or in ~/.pgpass"),
    "3D": ("has no such database", "create it with createdb, or name another one in the URL"),
    "40": ("is busy: others are writing the same rows", _INGEST_LATER),
    "42703": ("is damaged: a column is missing", _NEW_DATABASE),
    "42P01": ("is damaged: a table is missing", _NEW_DATABASE),
    "42501": ("refuses this user: permission denied", "grant the user the missing permission"),
    "53100": ("cannot be written: the server's disk is full", _MAKE_ROOM),
    "53": ("has no resources left", _INGEST_LATER),
    "54": ("cannot hold that much at once", _NOTHING_LOST),
    "55P03": ("is locked: another process is writing to it", _INGEST_LATER),
    "57": ("is shutting down, or ended the connection", _SERVER),
    "58": ("cannot be read or written: the server's disk failed", _SERVER),
}


@contextmanager
def errors_in_words(where: str) -> Iterator[None]:
    """Turns what SQLAlchemy and its drivers raise into StoreTrouble."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _trouble(where, error) from error
    except (UnicodeDecodeError, sqlite3.Error) as error:  # damaged names in the schema or in SQLite's own messages
        raise StoreTrouble("is damaged", where=where, remedy=_REBUILD) from error


def _trouble(where: str, error: SQLAlchemyError) -> StoreTrouble:
    cause: object = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None)
    known = _longest(code, _SQLITE if str(code).startswith("SQLITE") else _POSTGRESQL) if code else None
    if known is not None:
        return StoreTrouble(known[0], where=where, remedy=known[1])
    message = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    if code is None and type(cause).__module__.startswith("psycopg"):
        # The connection failed, so there was no server to give a code.
        return StoreTrouble(f"cannot be reached: {message}", where=where, remedy=_SERVER)
    return StoreTrouble(f"failed: {message}", where=where, remedy="see 'benchwright store check'; " + _NOTHING_LOST)


def _longest(code: str, words: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    fitting = [beginning for beginning in words if code.startswith(beginning)]
    return words[max(fitting, key=len)] if fitting else None

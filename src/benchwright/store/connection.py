"""Connecting to the database of a store: SQLite in a file, PostgreSQL on a server."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import OperationalError
from typing import Any, NoReturn
from urllib.parse import quote

import msgspec
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from benchwright.core.errors import ForeignStore, InvalidInput, NoStoreYet, StoreTrouble, did_you_mean
from benchwright.core.stored_file import open_stored
from benchwright.store.errors import errors_in_words
from benchwright.store.schema import MAIN

CONNECT_TIMEOUT_S = 10
BUSY_TIMEOUT_S = 30  # enough for eight writers on a busy machine
PROJECT = "benchwright_project"  # the option of a connection that says whose runs it sees
_POLL_S = 0.1
_PAGE_BYTES = 16384
_MAGIC = b"SQLite format 3\0"


class Database(msgspec.Struct, frozen=True):
    """Where a store is. `path`: the SQLite file."""

    url: URL
    path: Path | None

    @property
    def where(self) -> str:
        """For messages, without the password."""
        return str(self.path) if self.path is not None else self.url.render_as_string(hide_password=True)

    def file(self) -> tuple[int, int] | None:
        """Device and inode of the file; None if there is none, or the store is on a server."""
        try:
            found = os.stat(self.path) if self.path is not None else None
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)


def read_url(text: str) -> Database:
    """InvalidInput if it names no store, or one that needs a package that is not installed."""
    if "://" not in text:
        return _sqlite(text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        _refused("this is not the URL of a store")
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        return _sqlite(url.database)
    if kind in ("postgresql", "postgres"):
        _need_psycopg()
        return Database(url.set(drivername="postgresql+psycopg"), None)
    _refused(f"'{kind}' is not a kind of store", did_you_mean(kind, ["sqlite", "postgresql"]))


def _refused(what: str, remedy: str | None = None) -> NoReturn:
    remedy = remedy or "give a path, sqlite:////path or postgresql://user@host/database"
    raise InvalidInput(what, where="--store", remedy=remedy)


def _sqlite(name: str | None) -> Database:
    if not name or name == ":memory:":
        _refused("this names no file")
    path = Path(name).expanduser().absolute()
    if path.is_dir():
        _refused(f"{path} is a folder", f"name a file, such as {path / 'store.db'}")
    return Database(URL.create("sqlite+pysqlite", database=str(path)), path)


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"a store on PostgreSQL needs psycopg, which cannot be imported ({error})",
            where="--store",
            remedy="install it with: pip install 'benchwright[postgres]'",
        ) from error


def connect(database: Database, *, create: bool, patience_s: float | None = None) -> Engine:
    """An engine; makes the folder of a new SQLite file. StoreTrouble if there is no file and `create` is False.

    `patience_s`: how long to wait for a server to answer, or for a locked file.
    """
    if database.path is None:
        # With less than 2 s libpq waits for ever.
        wait_s = CONNECT_TIMEOUT_S if patience_s is None else max(2, round(patience_s))
        return create_engine(
            database.url,
            pool_pre_ping=True,
            connect_args={"connect_timeout": wait_s, "application_name": "benchwright"},
        )
    _prepare_file(database.path, create)
    wait = BUSY_TIMEOUT_S if patience_s is None else patience_s
    engine = create_engine(_file_url(database.path), connect_args={"timeout": wait})
    event.listen(engine, "connect", lambda connection, _: _set_up_sqlite(connection, wait))
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def no_store_yet(where: str) -> NoStoreYet:
    remedy = "measure something, or add runs: benchwright import RUNDIR"
    return NoStoreYet("there is no store yet", where=where, remedy=remedy)


def _prepare_file(path: Path, create: bool) -> None:
    if path.exists():
        _refuse_foreign(path)
        return
    if not create:
        raise no_store_yet(str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreTrouble(
            f"cannot create its folder: {error.strerror}", where=str(path), remedy="choose another one with --store"
        ) from error


def _refuse_foreign(path: Path) -> None:
    """SQLite would overwrite a very short file, which it takes for an empty database, and wait on a pipe for ever."""
    try:
        with open_stored(path) as handle:
            head = handle.read(len(_MAGIC))
    except OSError as error:
        if error.errno != errno.EINVAL:
            return  # SQLite says why
        raise ForeignStore("is not a file", where=str(path), remedy="choose another file with --store") from error
    unfinished = any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))
    if head and head != _MAGIC and not unfinished:
        raise ForeignStore("is not a store of benchwright", where=str(path), remedy="choose another file with --store")


def _file_url(path: Path) -> URL:
    """A file that cannot be written is opened for reading, so that its results can be shown."""
    writable = os.access(path, os.W_OK) if path.exists() else True
    if writable and os.access(path.parent, os.W_OK):
        return URL.create("sqlite+pysqlite", database=str(path))
    query = {"mode": "ro", "uri": "true"}
    journal = path.with_name(path.name + "-wal")
    if not journal.exists() or journal.stat().st_size == 0:
        query["immutable"] = "1"  # otherwise SQLite creates files beside it
    return URL.create("sqlite+pysqlite", database=f"file:{quote(str(path))}", query=query)


def _set_up_sqlite(connection: Any, wait_s: float) -> None:
    # None: the driver leaves transactions to us. On its own it would not begin one before CREATE TABLE.
    connection.isolation_level = None
    # SQLite's own LIKE ignores the case of ASCII letters only.
    connection.create_function("casefold", 1, lambda text: text and text.casefold(), deterministic=True)
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = NORMAL")  # with WAL, a power cut can lose the last commits, never the file
    cursor.close()


def project_of(connection: Connection) -> str:
    """Whose runs its queries may see; see `SqlStore.of_project`."""
    project: str = connection.get_execution_options().get(PROJECT, MAIN)
    return project


def _begin_sqlite(connection: Connection) -> None:
    # A reader that begins to write cannot wait for others, its view would be stale: writers declare themselves first.
    writes = connection.get_execution_options().get("benchwright_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def set_up_file(engine: Engine) -> None:
    """Settings that a new file keeps. With a write-ahead log, readers and one writer do not wait for each other.

    Some network file systems do not support it; the store works there too.
    """
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        # Arrays of a few kilobytes would leave a fifth of SQLite's usual 4 KiB pages empty.
        cursor.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            cursor.execute("PRAGMA journal_mode = WAL")
        cursor.close()
    except OperationalError:
        pass
    finally:
        raw.close()


def retire_file(path: Path) -> None:
    """Prepares a SQLite store for being replaced; StoreTrouble if another process keeps it open.

    A process that has it open removes the write-ahead log by name when it ends, which would be the new file's log.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        while True:
            try:
                connection.execute("PRAGMA journal_mode = DELETE")
                return
            except OperationalError as error:
                if time.monotonic() > deadline:
                    raise StoreTrouble(
                        "is in use by another process", where=str(path), remedy="try again when that has finished"
                    ) from error
                time.sleep(_POLL_S)
    finally:
        connection.close()


@contextmanager
def reading(engine: Engine, where: str) -> Iterator[Connection]:
    """A connection that sees one state of the store, whatever others write in the meantime."""
    with errors_in_words(where), engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


@contextmanager
def writing(engine: Engine, where: str) -> Iterator[Connection]:
    """A transaction: its changes are made when the block ends, or not at all if it fails."""
    with errors_in_words(where), engine.connect() as connection:
        connection = connection.execution_options(benchwright_writes=True)
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{BUSY_TIMEOUT_S}s'")
            yield connection

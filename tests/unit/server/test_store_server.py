"""One server for a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgresql import Server

from benchwright.core.errors import StoreTrouble
from benchwright.server.store_server import alone
from benchwright.store.sql_store import open_store


def only_one(url: str) -> None:
    with open_store(url) as first, open_store(url) as second:
        with alone(first), pytest.raises(StoreTrouble, match="is served by another process already"), alone(second):
            pass
        with alone(second):
            pass


def test_a_file_has_one_server(tmp_path: Path) -> None:
    only_one(str(tmp_path / "store.db"))


@pytest.mark.xdist_group("postgresql")
def test_a_database_has_one_server(postgresql_server: Server) -> None:
    only_one(postgresql_server.database())

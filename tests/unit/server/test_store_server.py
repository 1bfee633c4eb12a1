"""One server for a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgresql import Server

from benchwright.core.errors import StoreTrouble
from benchwright.server.store_server import alone
from benchwright.store.sql_store import open_store


def refusal_while_served(url: str) -> str:
    """Of a second server of this store; once the first has ended, there is none."""
    with open_store(url) as first, open_store(url) as second:
        with alone(first), pytest.raises(StoreTrouble) as refusal, alone(second):
            pass
        with alone(second):
            return str(refusal.value)


def test_a_file_has_one_server(tmp_path: Path) -> None:
    assert "is served by another process already" in refusal_while_served(str(tmp_path / "store.db"))


@pytest.mark.xdist_group("postgresql")
def test_a_database_has_one_server(postgresql_server: Server) -> None:
    assert "is served by another process already" in refusal_while_served(postgresql_server.database())

"""One server for a store, which answers at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from postgresql import Server

from benchwright.core.errors import StoreTrouble
from benchwright.server.store_server import alone, listening
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


def test_the_body_of_an_answer_is_sent_with_its_head() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

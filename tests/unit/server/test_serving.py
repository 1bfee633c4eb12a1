"""One server for a store, which answers at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from postgresql import Server

from benchwright.core.errors import StoreTrouble
from benchwright.server.serving import alone, listening
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


def test_the_body_of_an_answer_is_sent_with_its_head() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

"""Tokens: kept as digests, with scope, expiry and last use."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput, StoreTrouble
from benchwright.server.tokens import Scope, TokenFile


def test_only_the_digest_of_a_token_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    secret = tokens.create("ci", Scope.WRITE)
    assert secret.encode() not in tokens.path.read_bytes()
    assert tokens.path.stat().st_mode & 0o077 == 0
    found = tokens.of(secret)
    assert found is not None
    assert (found.name, found.scope) == ("ci", Scope.WRITE)


def test_an_expired_a_revoked_and_an_unknown_token_are_none(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    short = tokens.create("short", Scope.READ, timedelta(days=1), now=1000.0)
    assert tokens.of(short, now=1000.0 + 86399) is not None
    assert tokens.of(short, now=1000.0 + 86400) is None
    gone = tokens.create("gone", Scope.ADMIN)
    assert tokens.revoke("gone")
    assert not tokens.revoke("gone")
    for wrong in (gone, "", "bw_", "bw_é", gone.upper(), gone + "x", "' OR 1=1 --", "bw_' OR 1=1 --"):
        assert tokens.of(wrong) is None, wrong


def test_the_last_use_is_noted_at_most_once_a_minute(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    secret = tokens.create("ci", Scope.READ)
    uses = []
    for now in (100.0, 130.0, 161.0):
        tokens.of(secret, now=now)
        uses.append(tokens.every()[0].used)
    assert uses == [100.0, 100.0, 161.0]


def test_a_name_is_given_once_and_must_be_one(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    tokens.create("ci", Scope.READ)
    with pytest.raises(InvalidInput, match="benchwright token revoke ci"):
        tokens.create("ci", Scope.READ)
    for name in ("", " ", "a\nb", "x" * 101):
        with pytest.raises(InvalidInput, match="no name"):
            tokens.create(name, Scope.READ)


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "server.db").write_text("x" * 5000)
    with pytest.raises(StoreTrouble, match="tokens cannot be used"):
        TokenFile(tmp_path).every()


def test_without_a_file_there_are_none_and_none_is_made(tmp_path: Path) -> None:
    assert TokenFile(tmp_path).every() == []
    assert TokenFile(tmp_path).of("bw_x") is None
    assert not TokenFile(tmp_path).revoke("x")
    assert list(tmp_path.iterdir()) == []

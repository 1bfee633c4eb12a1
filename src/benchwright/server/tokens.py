"""Tokens: who may read, write or administer a server's store. Only their SHA-256 is kept.

They are in a file of the server's base folder, not in the store: whoever can read the database is not let in by it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput, StoreTrouble

FILE = "server.db"
_PREFIX = "bw_"
_NOTED_EVERY_S = 60.0  # a token's last use
_TABLE = """CREATE TABLE IF NOT EXISTS tokens (
 name TEXT PRIMARY KEY, scope TEXT NOT NULL, sha256 TEXT NOT NULL UNIQUE, created REAL NOT NULL, expires REAL, used REAL)"""


class Scope(IntEnum):
    """What a token allows; each allows what the one before does."""

    READ = 1
    WRITE = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """One token, without its secret. Times are in seconds since 1970."""

    name: str
    scope: Scope
    created: float
    expires: float | None
    used: float | None

    def is_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


class TokenFile:
    """The tokens of one base folder; several processes may use them at once."""

    def __init__(self, base: Path) -> None:
        self.path = base / FILE

    def create(self, name: str, scope: Scope, lifetime: timedelta | None = None, *, now: float | None = None) -> str:
        """The secret, which nobody can look up again; InvalidInput if the name is taken."""
        now = _now() if now is None else now
        if not name.strip() or not name.isprintable() or len(name) > 100:
            raise InvalidInput(
                "this is no name for a token", where="NAME", remedy="such as ci, or the name of a machine"
            )
        secret = _PREFIX + secrets.token_urlsafe(32)
        expires = None if lifetime is None else now + lifetime.total_seconds()
        try:
            with self._opened() as database:
                row = (name, scope.word, _digest(secret), now, expires)
                database.execute("INSERT INTO tokens (name, scope, sha256, created, expires) VALUES (?,?,?,?,?)", row)
        except sqlite3.IntegrityError:
            remedy = f"choose another name, or first: benchwright token revoke {name}"
            raise InvalidInput(f"there is a token called '{name}'", where=str(self.path), remedy=remedy) from None
        return secret

    def every(self) -> list[Token]:
        if not self.path.exists():
            return []
        with self._opened() as database:
            return [_token(row) for row in database.execute(f"{_ALL} ORDER BY created, name")]

    def revoke(self, name: str) -> bool:
        """Whether there was one. A server that runs refuses it from now on."""
        if not self.path.exists():
            return False
        with self._opened() as database:
            return database.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount > 0

    def of(self, secret: str, *, now: float | None = None) -> Token | None:
        """The token, whose use is noted; None if it is unknown or expired."""
        now = _now() if now is None else now
        if not secret.startswith(_PREFIX) or not secret.isascii() or not self.path.exists():
            return None
        with self._opened() as database:
            row = database.execute(f"{_ALL} WHERE sha256 = ?", (_digest(secret),)).fetchone()
            token = None if row is None else _token(row)
            if token is None or token.is_expired(now):
                return None
            if token.used is None or now - token.used > _NOTED_EVERY_S:
                database.execute("UPDATE tokens SET used = ? WHERE name = ?", (now, token.name))
            return token

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction; StoreTrouble if the file cannot be used."""
        try:
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
            database = sqlite3.connect(self.path, timeout=10)
            try:
                with database:
                    database.execute(_TABLE)
                    yield database
            finally:
                database.close()
        except sqlite3.IntegrityError:
            raise
        except (OSError, sqlite3.Error) as error:
            remedy = "check that the file is yours and the disk not full, or move it away and make new tokens"
            raise StoreTrouble(f"the tokens cannot be used: {error}", where=str(self.path), remedy=remedy) from error


_ALL = "SELECT name, scope, created, expires, used FROM tokens"


def _token(row: tuple[str, str, float, float | None, float | None]) -> Token:
    name, scope, created, expires, used = row
    return Token(name=name, scope=Scope[scope.upper()], created=created, expires=expires, used=used)


def _digest(secret: str) -> str:
    # A random secret of 256 bits needs no slow hash.
    return hashlib.sha256(secret.encode()).hexdigest()


def _now() -> float:
    return datetime.now(UTC).timestamp()

"""Tokens: who may read, write or administer a server's store. Only their SHA-256 is kept."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from datetime import timedelta
from enum import IntEnum

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.server.server_file import ServerFile, now_s
from benchwright.store.schema import MAIN

__all__ = ["MAIN", "Scope", "Token", "TokenFile", "digest_of"]
_PREFIX = "bw_"
_NOTED_EVERY_S = 60.0  # a token's last use


class Scope(IntEnum):
    """The rights of a token; each includes the one before."""

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
    project: str = MAIN

    def may(self, scope: Scope, project: str) -> bool:
        """An admin's token may name any project; the others see and change only theirs."""
        return self.scope >= scope and (project == self.project or self.scope is Scope.ADMIN)

    def is_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


class TokenFile(ServerFile):
    """The tokens of one base folder."""

    def create(
        self,
        name: str,
        scope: Scope,
        lifetime: timedelta | None = None,
        *,
        project: str = MAIN,
        now: float | None = None,
    ) -> str:
        """The secret, which nobody can look up again; InvalidInput if the name is taken."""
        now = now_s() if now is None else now
        if not name.strip() or not name.isprintable() or len(name) > 100:
            raise InvalidInput(
                "this is no name for a token", where="NAME", remedy="such as ci, or the name of a machine"
            )
        secret = _PREFIX + secrets.token_urlsafe(32)
        expires = None if lifetime is None else now + lifetime.total_seconds()
        try:
            with self.opened() as database:
                row = (name, scope.word, digest_of(secret), now, expires, project)
                database.execute(
                    "INSERT INTO tokens (name, scope, sha256, created, expires, project) VALUES (?,?,?,?,?,?)", row
                )
        except sqlite3.IntegrityError:
            remedy = f"choose another name, or first: benchwright token revoke {name}"
            raise InvalidInput(f"there is a token called '{name}'", where=str(self.path), remedy=remedy) from None
        return secret

    def every(self) -> list[Token]:
        if not self.path.exists():
            return []
        with self.opened() as database:
            return [_token(row) for row in database.execute(f"{_ALL} ORDER BY created, name")]

    def revoke(self, name: str) -> bool:
        """Whether there was one. A server that runs refuses it from now on."""
        if not self.path.exists():
            return False
        with self.opened() as database:
            return database.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount > 0

    def of(self, secret: str, *, now: float | None = None) -> Token | None:
        """The token, whose use is noted; None if it is unknown or expired."""
        now = now_s() if now is None else now
        if not secret.startswith(_PREFIX) or not secret.isascii() or not self.path.exists():
            return None
        with self.opened() as database:
            row = database.execute(f"{_ALL} WHERE sha256 = ?", (digest_of(secret),)).fetchone()
            token = None if row is None else _token(row)
            if token is None or token.is_expired(now):
                return None
            if token.used is None or now - token.used > _NOTED_EVERY_S:
                database.execute("UPDATE tokens SET used = ? WHERE name = ?", (now, token.name))
            return token

    def named(self, name: str, *, now: float | None = None) -> Token | None:
        """None if it is revoked or expired."""
        with self.opened() as database:
            row = database.execute(f"{_ALL} WHERE name = ?", (name,)).fetchone()
        token = None if row is None else _token(row)
        return None if token is None or token.is_expired(now_s() if now is None else now) else token


_ALL = "SELECT name, scope, created, expires, used, project FROM tokens"


def _token(row: tuple[str, str, float, float | None, float | None, str]) -> Token:
    name, scope, created, expires, used, project = row
    return Token(name=name, scope=Scope[scope.upper()], created=created, expires=expires, used=used, project=project)


def digest_of(secret: str) -> str:
    # A random secret of 256 bits needs no slow hash.
    return hashlib.sha256(secret.encode()).hexdigest()

"""Sessions of browsers: a token is exchanged for a cookie, and a form that writes carries the session's own secret."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

import msgspec

from benchwright.server.server_file import ServerFile, now_s
from benchwright.server.tokens import MAIN, Token, TokenFile, digest_of

COOKIE = "bw_session"
_LASTS_S = 7 * 86_400.0
_MOST_AUDITED = 2000  # characters of an action


class BrowserSession(msgspec.Struct, frozen=True):
    """A signed-in browser. `csrf`: what its forms carry, so that no other site's can write in its name."""

    token: Token
    csrf: str

    def is_ours(self, form: Mapping[str, str]) -> bool:
        return hmac.compare_digest(form.get("csrf", "").encode("utf-8", "replace"), self.csrf.encode())


class SessionFile(ServerFile):
    """Sessions end with their token, and after a week."""

    def begin(self, token: Token, *, now: float | None = None) -> str:
        """The cookie's value."""
        now = now_s() if now is None else now
        secret = secrets.token_urlsafe(32)
        expires = min(now + _LASTS_S, token.expires or now + _LASTS_S)
        with self.opened() as database:
            database.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            row = (digest_of(secret), token.name, secrets.token_urlsafe(32), expires)
            database.execute("INSERT INTO sessions (sha256, token, csrf, expires) VALUES (?,?,?,?)", row)
        return secret

    def of(self, secret: str, tokens: TokenFile, *, now: float | None = None) -> BrowserSession | None:
        """None if it has ended, or its token was revoked or has expired."""
        now = now_s() if now is None else now
        if not secret or not secret.isascii() or not self.path.exists():
            return None
        with self.opened() as database:
            query = "SELECT token, csrf FROM sessions WHERE sha256 = ? AND expires > ?"
            row = database.execute(query, (digest_of(secret), now)).fetchone()
        token = None if row is None else tokens.named(row[0], now=now)
        return None if token is None else BrowserSession(token, row[1])

    def end(self, secret: str) -> None:
        with self.opened() as database:
            database.execute("DELETE FROM sessions WHERE sha256 = ?", (digest_of(secret),))


class AuditedWrite(msgspec.Struct, frozen=True):
    at: float
    token: str
    action: str


class AuditLog(ServerFile):
    """Who wrote what, and when."""

    def note(self, token: str, action: str, project: str = MAIN) -> None:
        with self.opened() as database:
            row = (now_s(), token, action[:_MOST_AUDITED], project)
            database.execute("INSERT INTO audit (at, token, action, project) VALUES (?,?,?,?)", row)

    def newest(self, limit: int, project: str = MAIN) -> list[AuditedWrite]:
        with self.opened() as database:
            query = "SELECT at, token, action FROM audit WHERE project = ? ORDER BY key DESC LIMIT ?"
            return [AuditedWrite(*row) for row in database.execute(query, (project, limit))]

"""Where remote reports go, and the token that lets them in."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import msgspec

from benchwright.artifacts.outbox import checked_url
from benchwright.core.errors import InvalidInput

OPTION, TOKEN_OPTION, VARIABLE = "--remote-reporter", "--remote-access-token", "BENCHWRIGHT_REMOTE_TOKEN"
_FORM = "write 'https://HOST/PATH|CATEGORY'"


class Endpoint(msgspec.Struct, frozen=True, order=True):
    """A server that takes messages, and the category they are filed under."""

    url: str
    category: str

    def __str__(self) -> str:
        return f"{self.url}|{self.category}"


class AccessToken:
    """A secret: it never shows in a message, a traceback or a file."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def reveal(self) -> str | None:
        """For the body of a request, and nothing else."""
        return self._text

    def __repr__(self) -> str:
        return "AccessToken(…)"


def endpoint_of(text: str) -> Endpoint:
    """`URL|CATEGORY`; https is assumed where the URL has no scheme."""
    url, bar, category = (part.strip() for part in text.partition("|"))
    if not bar or not category or "|" in category:
        raise InvalidInput("has no category" if url else "names no server", where=OPTION, remedy=_FORM)
    url = checked_url(url, where=OPTION, remedy=_FORM)
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("holds a password", where=OPTION, remedy=f"give a token with {TOKEN_OPTION} instead")
    return Endpoint(url, category)


def token_of(given: str | None) -> AccessToken:
    """The token itself, or `@FILE` that holds it; where none is given, that of the environment."""
    text = given or os.environ.get(VARIABLE)
    if text and text.startswith("@"):
        try:
            with open(os.path.expanduser(text[1:]), encoding="utf-8") as file:
                text = file.read(1 << 16)
        except (OSError, UnicodeDecodeError) as error:
            what = getattr(error, "strerror", None) or "it is not text"
            raise InvalidInput(
                f"{text[1:]} cannot be read: {what}", where=TOKEN_OPTION, remedy="check the path"
            ) from None
        if not text.strip():
            raise InvalidInput("the file is empty", where=TOKEN_OPTION, remedy="write the token into it")
    return AccessToken(text.strip() if text else None)

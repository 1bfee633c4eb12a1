"""Replaces secrets in environments, command lines and configurations before anything is written to disk.

Secrets are recognised by name (`--password`, `DB_PASS`) and by shape (a password in a URL, a token of a known service).
The program itself gets the real values. docs/reference/secrets.md has the rules.
"""

from __future__ import annotations

import json
import re

from benchwright.core.secrets.names import is_secret_option, is_secret_variable
from benchwright.core.secrets.shapes import REDACTED, SHORT_OPTIONS, redact_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["REDACTED", "redact", "redact_body", "redact_text", "redact_words"]

_NAMED = re.compile(r"(-{0,2}[A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_ATTACHED = re.compile(r"(?:.*/)?(?:mysql\w*|mariadb[\w-]*|7za?|sshpass)$")  # these take it attached: -pWORD
_USERS = ("-u", "--user", "--proxy-user")
_PROGRAMS = frozenset(SHORT_OPTIONS) | {"curl", "docker", "podman", "http", "https", "xh"}
_CURL_USER = re.compile(r"-[A-Za-z]{0,9}[uU]")


def redact(environment: Mapping[str, str]) -> dict[str, str]:
    """The same variables, with secret values, and secrets inside other values, replaced."""
    return {name: REDACTED if is_secret_variable(name, value) else _value(value) for name, value in environment.items()}


def _value(text: str) -> str:
    """A variable may hold a whole configuration, with command lines in it."""
    if not text.startswith(("{", "[")):
        return redact_text(text)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return redact_text(text)
    shown = redact_body(body)
    return redact_text(text) if shown == body else json.dumps(shown)


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """A command line with the values of `--password X` and `--password=X`, and secrets in any word, replaced."""
    program = ""
    before = ""  # the option whose value this word may be
    shown = []
    for word in words:
        shown.append(_redacted_word(word, before, program))
        if _OPTION.fullmatch(word):
            before = word
            continue
        before = ""
        name = word.rpartition("/")[2]
        if f"{program} {name}" in SHORT_OPTIONS:
            program = f"{program} {name}"
        elif name in _PROGRAMS or _ATTACHED.match(word):
            program = name
    return tuple(shown)


def _redacted_word(word: str, before: str, program: str) -> str:
    if before and not _OPTION.fullmatch(word):
        if before == SHORT_OPTIONS.get(program) or is_secret_option(before, word):
            return REDACTED
        if (shown := _redacted_user(word, before, program)) is not None:
            return shown
    if word.startswith("-p") and len(word) > 2 and _ATTACHED.match(program):
        return f"-p{REDACTED}"
    if program == "curl" and word.startswith(("-u", "-U")) and ":" in word:
        return f"{word.partition(':')[0]}:{REDACTED}"
    if before != "-c" and (named := _NAMED.fullmatch(word)):  # a shell script is text, not one value
        name, value = named.groups()
        is_secret = is_secret_variable if name.isupper() else is_secret_option
        if is_secret(name, value):
            return f"{name}={REDACTED}"
    return redact_text(word)


def _redacted_user(word: str, option: str, program: str) -> str | None:
    """`user:(redacted)` if the option's value is a user with a password, or a cookie with its value; else None."""
    if program == "curl" and option in ("-b", "--cookie") and "=" in word:
        return f"{word.partition('=')[0]}={REDACTED}"
    user, colon, password = word.partition(":")
    takes_user = option in _USERS or (program == "curl" and _CURL_USER.fullmatch(option))
    takes_user = takes_user or (program in ("http", "https", "xh") and option == "-a")
    if takes_user and colon and not password.isdigit() and "/" not in user:
        return f"{user}:{REDACTED}"
    user, percent, password = word.partition("%")
    return f"{user}%{REDACTED}" if option in ("-U", "--user") and percent and user[:1].isalpha() and password else None


def redact_body(body: object) -> Any:
    """For JSON values: mappings by their keys, lists of texts as command lines, texts by shape."""
    if isinstance(body, str):
        return redact_text(body)
    if isinstance(body, dict):
        return {key: _redacted_value(key, value) for key, value in body.items()}
    if isinstance(body, list | tuple):
        if body and all(isinstance(item, str) for item in body):
            return type(body)(redact_words(body))
        return type(body)(redact_body(item) for item in body)
    return body


def _redacted_value(key: object, value: object) -> object:
    if isinstance(key, str) and isinstance(value, str):
        is_secret = is_secret_variable if key.isupper() else is_secret_option
        if is_secret(key, value):
            return REDACTED
    return redact_body(value)

"""Replaces secrets in environments, command lines and configurations before anything is written to disk.

Secrets are recognised by name (`--password`, `DB_PASS`) and by shape (a password in a URL, a token of a known service).
The program itself gets the real values. docs/reference/secrets.md has the rules.
"""

from __future__ import annotations

import json
import re

from benchwright.core.secrets.names import is_secret_option, is_secret_variable
from benchwright.core.secrets.shapes import REDACTED, redact_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["REDACTED", "redact", "redact_body", "redact_text", "redact_words"]

_NAMED = re.compile(r"(-{0,2}[A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
# Programs with a short option for passwords.
_SHORT = {"sshpass": "-p", "redis-cli": "-a", "mongo": "-p", "mongosh": "-p", "mongodump": "-p", "ldapsearch": "-w"}
_SHORT |= {"docker": "-p", "podman": "-p", "sqlcmd": "-P", "bcp": "-P", "unzip": "-P", "zip": "-P"}
_ATTACHED = re.compile(r"(?:.*/)?(?:mysql\w*|mariadb[\w-]*|7za?)$")  # these take it attached: -pWORD
_USERS = ("-u", "--user", "--proxy-user")


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
        if name in _SHORT or _ATTACHED.match(word):
            program = name
    return tuple(shown)


def _redacted_word(word: str, before: str, program: str) -> str:
    if before and not _OPTION.fullmatch(word):
        if before == _SHORT.get(program) or is_secret_option(before, word):
            return REDACTED
        user, colon, password = word.partition(":")
        if before in _USERS and colon and not password.isdigit() and "/" not in user:
            return f"{user}:{REDACTED}"
    if word.startswith("-p") and len(word) > 2 and _ATTACHED.match(program):
        return f"-p{REDACTED}"
    if before != "-c" and (named := _NAMED.fullmatch(word)):  # a shell script is text, not one value
        name, value = named.groups()
        is_secret = is_secret_variable if name.isupper() else is_secret_option
        if is_secret(name, value):
            return f"{name}={REDACTED}"
    return redact_text(word)


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

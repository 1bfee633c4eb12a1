"""Recognising secrets by the name of a variable, option or key."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
# Secret whatever the value.
_STRONG = frozenset(
    "password passwords passwd passphrase passcode pw pwd keypass storepass secret secrets credential credentials creds "
    "apikey apitoken accesstoken authtoken accesskey secretkey privatekey sharedaccesskey accountkey jwt bearer "
    "cookie cookies dsn webhook webhooks authorization connectionstring connstr".split()
)
_STRONG_PAIRS = frozenset([("connection", "string"), ("conn", "str"), ("session", "id"), ("web", "hook")])
# Secret unless the value is a number, a switch or a path: `--token` may be a password or an end-of-sentence token.
_WEAK = frozenset("token key auth pass pat sig signature sas".split())
_SECRET_KINDS = frozenset(
    "access api app auth bearer bot client consumer csrf deploy encryption github gitlab hf hub id jwt license master oauth "
    "personal private refresh secret security service session shared signing ssh storage account user wandb write x".split()
)
# Endings of names that are about a secret, such as its file or its length.
_ABOUT_IT = frozenset(
    "file files path dir folder jar length len size count num policy prompt type name names env stdin ttl timeout".split()
)
_STRONG_ENDS = ("password", "passwd", "passphrase", "apikey")  # as in PGPASSWORD
_NOT_SECRET = frozenset(["PWD", "OLDPWD"])  # where a shell is
_BENIGN = re.compile(
    r"|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|true|false|yes|no|on|off|none|null|auto|default|basic|digest",
    re.IGNORECASE | re.ASCII,
)
_PATH = re.compile(r"(?:~|\.{0,2}/)[\w.~/ -]*$")
_RUN = re.compile(r"[A-Za-z0-9+/]{16,}")


def is_secret_variable(name: str, value: str) -> bool:
    """For environment variables: strict, since only those that explain performance are kept at all."""
    words = _split(name)
    if name in _NOT_SECRET or not value:
        return False
    if _is_strong(words):
        return not (words[-1] in _ABOUT_IT and _is_harmless(value))
    return any(word in _WEAK for word in words) and not _is_harmless(value)


def is_secret_option(name: str, value: str) -> bool:
    """For options (`--api-key`), keys of a configuration, and parameters in a URL."""
    words = _split(name)
    if not words or words[-1] in _ABOUT_IT or name in _NOT_SECRET or not value:
        return False
    if _is_strong(words):
        return True
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in ("id", "value")):
        words = words[:-1]
    if words[-1] not in _WEAK:
        return False
    before = words[-2] if len(words) > 1 else None
    if before in _SECRET_KINDS and len(value) > 3 and any(c.isdigit() for c in value) and not _PATH.match(value):
        return True  # a key may be digits only; `--user-pass 3` is no secret
    if _is_harmless(value):
        return False
    certain = before in _SECRET_KINDS or (before is None and words[-1] in ("token", "pass", "auth", "pat"))
    return certain or looks_random(value)


def looks_random(value: str) -> bool:
    """Whether it has a long run of mixed letters and digits, unlike words and file names."""
    return any(
        any(c.isdigit() for c in run) and any(c.isalpha() for c in run) for run in _RUN.findall(value)
    ) and not _PATH.match(value)


@lru_cache(maxsize=4096)
def _split(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(name))


@lru_cache(maxsize=4096)
def _is_strong(words: tuple[str, ...]) -> bool:
    return any(word in _STRONG or word.endswith(_STRONG_ENDS) for word in words) or any(
        pair in _STRONG_PAIRS for pair in pairwise(words)
    )


def _is_harmless(value: str) -> bool:
    return _BENIGN.fullmatch(value) is not None or _PATH.match(value) is not None

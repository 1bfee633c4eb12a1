"""Recognising secrets by the name of a variable, option or key."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
    "personal private refresh secret security service session shared signing ssh storage account user wandb write x "
    "sas vault databricks xai openai anthropic azure aws gcp google slack discord telegram notion npm pypi docker registry "
    "jira sentry datadog grafana pagerduty twilio stripe artifactory nexus sonar codecov snyk admin root deploy ci".split()
)
# Of whom a `pass` is a password: `--db-pass`, `USERPASS`. Others are passes of a compiler, a filter or a loop.
_ACCOUNTS = (
    "access account admin amqp api app auth bind client cloud database db email encryption ftp git http https imap jdbc key ldap "
    "login mail master mongo mqtt mysql oracle pdf pg pop postgres private proxy rabbit rabbitmq redis repo root server service sftp "
    "smb smtp sql ssh ssl store sudo svn system test tls trust unix user vault vpn web wifi wlan zip".split()
)
# Endings of names that are about a secret, such as its file or its length.
_ABOUT_IT = frozenset(
    "file files path dir folder jar length len size count num policy prompt type name names env stdin ttl timeout "
    "enabled enable disabled mode version required retries attempts expiry format".split()
)
_STRONG_ENDS = ("password", "passwd", "passphrase", "apikey", "secret")  # as in PGPASSWORD, MYSECRET
_ACCOUNT_PASS = re.compile(rf"(?:{'|'.join(_ACCOUNTS)})pass")  # USERPASS
OWN_VARIABLE = "BENCHWRIGHT_SECRETS"  # names of one's own, separated by commas or spaces; `*` stands for anything
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
    if is_own(name):
        return True
    if _is_strong(words):
        return not (words[-1] in _ABOUT_IT and _is_harmless(value))
    return any(word in _WEAK or _ACCOUNT_PASS.fullmatch(word) for word in words) and not _is_harmless(value)


def is_secret_option(name: str, value: str) -> bool:
    """For options (`--api-key`), keys of a configuration, and parameters in a URL."""
    words = _split(name)
    if value and is_own(name):
        return True
    if not words or words[-1] in _ABOUT_IT or name in _NOT_SECRET or not value:
        return False
    if _is_strong(words):
        return True
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in ("id", "value")):
        words = words[:-1]
    if _ACCOUNT_PASS.fullmatch(words[-1]):
        words = (*words[:-1], words[-1].removesuffix("pass"), "pass")
    if words[-1] not in _WEAK:
        return False
    before = words[-2] if len(words) > 1 else None
    if before in _SECRET_KINDS and len(value) > 3 and any(c.isdigit() for c in value) and not _PATH.match(value):
        return True  # a key may be digits only; `--user-pass 3` is no secret
    if _is_harmless(value):
        return False
    certain = before in _SECRET_KINDS or (before is None and words[-1] in ("token", "pass", "auth", "pat", "sas"))
    certain = certain or (words[-1] == "pass" and before in _ACCOUNTS)
    return certain or looks_random(value)


def looks_random(value: str) -> bool:
    """Whether it has a long run of mixed letters and digits, unlike words and file names."""
    return any(
        any(c.isdigit() for c in run) and any(c.isalpha() for c in run) for run in _RUN.findall(value)
    ) and not _PATH.match(value)


def own_names() -> tuple[str, ...]:
    """What the user calls secret, as it is compared: in lower case, with `_` between words."""
    return _own_names(os.environ.get(OWN_VARIABLE, ""))


def add_own_names(names: Iterable[str]) -> None:
    """For this process and those it starts, which write down what they measure."""
    if names := tuple(names):
        before = os.environ.get(OWN_VARIABLE, "").split()
        os.environ[OWN_VARIABLE] = " ".join(dict.fromkeys([*before, *names]))


def is_own(name: str) -> bool:
    own = own_names()
    return bool(own) and _own_pattern(own).fullmatch(_compared(name)) is not None


def _compared(name: str) -> str:
    return name.lstrip("-").lower().replace("-", "_")


@lru_cache(maxsize=4)
def _own_names(text: str) -> tuple[str, ...]:
    return tuple(_compared(name) for name in re.split(r"[\s,]+", text) if name.strip("*-_."))


@lru_cache(maxsize=4)
def _own_pattern(own: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in own), re.DOTALL)


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

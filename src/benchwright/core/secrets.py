"""Recognising secrets by the name of a variable, option or key."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from itertools import pairwise

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any


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
STORE_TOKEN = "BENCHWRIGHT_TOKEN"  # of a store that is a server
OWN_VARIABLE = "BENCHWRIGHT_SECRETS"  # names of one's own, separated by commas or spaces; `*` stands for anything
_NOT_SECRET = frozenset(["PWD", "OLDPWD"])  # where a shell is
_BENIGN = re.compile(
    r"|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|true|false|yes|no|on|off|none|null|auto|default|basic|digest",
    re.IGNORECASE | re.ASCII,
)
_PATH = re.compile(r"(?:~|\.{0,2}/)[\w.~/ -]*$")
_RUN = re.compile(r"[A-Za-z0-9+/]{16,}")


def is_secret_variable(name: str, value: str) -> bool:
    """For environment variables: strict, since only variables that explain performance are kept at all."""
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
    """Names the user calls secret, normalised: in lower case, with `_` between words."""
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


# Recognising secrets in any text by their shape: passwords in URLs and options, tokens of known services, private keys.


REDACTED = "(redacted)"

# Programs with a short option for passwords.
SHORT_OPTIONS = {
    "sshpass": "-p",
    "redis-cli": "-a",
    "mongo": "-p",
    "mongosh": "-p",
    "mongodump": "-p",
    "ldapsearch": "-w",
}
SHORT_OPTIONS |= {"docker login": "-p", "podman login": "-p", "sqlcmd": "-P", "bcp": "-P", "unzip": "-P", "zip": "-P"}
SHORT_OPTIONS |= {"openssl": "-k"}
_BEHIND = rf"\g<1>{REDACTED}"
# A hint that the lower-cased text must contain before the pattern is tried, the pattern, and the replacement.
# Repetitions are bounded, so that the time is linear in the length of the text.
_RULES = (
    ("-----begin", r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(?:(?!-----END)[\s\S])*", _BEHIND),
    # A password in front of a host. A port after a host is not one.
    (
        "@",
        r"(://[^\s/:@\[\"']{0,64}:)(?!\d+(?:[/?#\s\"',;]|$))[^\s@\"']{1,128}(?=@)(?:@[^\s@/\"']{1,64}(?=@)){0,9}",
        _BEHIND,
    ),
    ("@", r"(\bhttps?://)[\w.~%-]{16,300}(?=@)", _BEHIND),
    ("hook", r"(\bhooks\.slack\.com/\w+/|/api/webhooks/|\.webhook\.office\.com/\w+/)[^\s\"']+", _BEHIND),
    ("authorization", r"((?i:\bauthorization)[\"']?\s{0,9}[:=]\s{0,9})[^\r\n\"']+", _BEHIND),
    ("cookie", r"((?i:\bcookie)[\"']?\s{0,9}[:=]\s{0,9})[^\r\n\"']+", _BEHIND),
    ("bearer", r"(\b(?i:bearer)\s{1,9})[\w.~+/=-]{8,}", _BEHIND),
    # mysql takes -pPASSWORD, curl USER:PASSWORD, openssl pass:PASSWORD.
    ("mysql", r"(\bmysql\w{0,20}\s(?:[^|;&\n]{0,200}?\s)?-p)[^\s\"']+", _BEHIND),
    ("mariadb", r"(\bmariadb[\w-]{0,20}\s(?:[^|;&\n]{0,200}?\s)?-p)[^\s\"']+", _BEHIND),
    (
        "-u",
        r"((?<![\w-])(?:-u|--user|--proxy-user)[= ]\s{0,9}[^\s:=\"'/]{1,100}:)(?!\d+(?![^\s\"']))[^\s\"']+",
        _BEHIND,
    ),
    # curl takes USER:PASSWORD attached, too, and cookies; smbclient USER%PASSWORD; httpie -a USER:PASSWORD.
    (
        "curl",
        r"(\bcurl\s(?:[^|;\n]{0,200}?\s)?-[A-Za-z]{0,9}[uU]\s{0,9}[^\s:=\"'/-][^\s:=\"'/]{0,100}:)(?!\d+(?![^\s\"']))[^\s\"']+",
        _BEHIND,
    ),
    ("curl", r"(\bcurl\s(?:[^|;\n]{0,200}?\s)?(?:-b|--cookie)[= ]\s{0,9}[\"']?[\w.-]{1,100}=)[^\s\"']+", _BEHIND),
    ("%", r"((?<![\w-])(?:-U|--user)[= ]?\s{0,9}[A-Za-z][\w.\\-]{0,100}%)[^\s\"']+", _BEHIND),
    ("http", r"(\bhttps?\s(?:[^|;\n]{0,200}?\s)?-a\s{0,9}[^\s:=\"'/]{1,100}:)[^\s\"']+", _BEHIND),
    *(
        (
            program.split()[0],
            rf"(\b{program}\s(?:[^|;&\n]{{0,200}}?\s)?{option}\s{{0,9}})[^\s\"'-][^\s\"']*",
            _BEHIND,
        )
        for program, option in SHORT_OPTIONS.items()
    ),
    ("7z", r"(\b7za?\s(?:[^|;&\n]{0,200}?\s)?-p)[^\s\"']+", _BEHIND),
    ("pass:", r"((?<![\w-])-pass(?:in|out|word)?[= ]\s{0,9}pass:)[^\s\"']+", _BEHIND),
    *(
        (prefix, rf"(?<![A-Za-z0-9]){token}", REDACTED)
        for prefix, token in (
            ("gh", r"gh[pousr]_[A-Za-z0-9]{20,}"),
            ("github_pat_", r"github_pat_\w{20,}"),
            ("glpat-", r"glpat-[\w-]{16,}"),
            ("sk-", r"sk-(?:[a-z0-9]{1,20}-){0,3}(?=[A-Za-z_]*\d)(?=[\d_]*[A-Za-z])\w{20,}"),  # OpenAI and others
            ("xox", r"xox[a-z]-[A-Za-z0-9-]{10,}"),  # Slack
            ("a", r"A(?:KIA|SIA|GPA|IDA|ROA|IPA|NPA|NVA)[A-Z0-9]{16}"),  # AWS
            ("hf_", r"hf_(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{30,}"),  # Hugging Face
            ("eyj", r"eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"),  # JSON web tokens
            ("npm_", r"npm_[A-Za-z0-9]{30,}"),
            ("pypi-", r"pypi-[\w-]{30,}"),
            ("aiza", r"AIza[\w-]{35}"),  # Google
            ("ya29.", r"ya29\.[\w-]{20,}"),
            ("sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
            ("dckr_pat_", r"dckr_pat_[\w-]{20,}"),
            ("dop_v1_", r"dop_v1_[0-9a-f]{40,}"),
            ("shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
            ("k_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),  # Stripe
            ("whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
            ("gsk_", r"gsk_[A-Za-z0-9]{40,}"),
            ("nvapi-", r"nvapi-[\w-]{40,}"),
            ("r8_", r"r8_[A-Za-z0-9]{36,}"),
            ("gl", r"gl(?:dt|rt|cbt|ptt|ft|soat|imt|agent)-[\w-]{16,}"),  # GitLab
            ("xapp-", r"xapp-[\w-]{20,}"),
            ("gocspx-", r"GOCSPX-[\w-]{20,}"),
            ("xai-", r"xai-[A-Za-z0-9]{40,}"),
            ("dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),  # Databricks
            ("hv", r"hv[sbr]\.[\w-]{24,}"),  # Vault
            ("s.", r"s\.(?=[A-Za-z]{0,23}\d)(?=[a-z\d]{0,23}[A-Z])[A-Za-z0-9]{24}(?![\w.-])"),
            ("wandb_v1_", r"wandb_v1_[\w-]{30,}"),
            ("pplx-", r"pplx-[A-Za-z0-9]{40,}"),
            ("fw_", r"fw_(?=[A-Za-z]{0,20}\d)(?=[a-z\d]{0,20}[A-Z])[A-Za-z0-9]{20,}"),  # Fireworks
            ("tgp_v1_", r"tgp_v1_[\w-]{30,}"),
            ("lsv2_", r"lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{10}"),
            ("pcsk_", r"pcsk_[\w-]{40,}"),
            ("figd_", r"figd_[\w-]{30,}"),
            ("lin_api_", r"lin_api_[A-Za-z0-9]{30,}"),
            ("secret_", r"secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"),  # Notion
            ("ntn_", r"ntn_[A-Za-z0-9]{40,}"),
            ("dp.", r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{30,}"),  # Doppler
            ("pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),  # Postman
            ("glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}"),  # Grafana
            ("sntry", r"sntry[su]_[\w+/=-]{30,}"),
            ("nrak-", r"NRAK-[A-Z0-9]{27}"),
            ("atatt3", r"ATATT3[\w=-]{30,}"),  # Atlassian
            ("tskey-", r"tskey-[a-z]{2,12}-[\w-]{20,}"),  # Tailscale
            ("oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),  # NuGet
            (":aa", r"\d{8,10}:AA[\w-]{33}(?![\w-])"),  # Telegram
            ("age-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
        )
    ),
)
# What the name of a secret contains; such names; and their values.
_KEYWORD = "pass|pwd|pw|secret|token|key|auth|cred|cookie|bearer|dsn|jwt|hook|sig|sas|pat|session|conn"
_NAME = r"-{0,2}[A-Za-z_][\w.-]{0,100}"
_BETWEEN = r"[\"']?\s{0,9}[=:]\s{0,9}|[ \t]{1,9}(?!-)"
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\(redacted\)|[^\s,;&"'}\])]{1,500})"""
_REST = r"""[^\s,;&"'}\])]*"""  # of a longer value
_IN_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_LONGEST_NAME = 100
_LONGEST_VALUE = 500  # as much as is examined
_MOST_ROUNDS = 10
_SHORT = 200  # characters
_compiled = lru_cache(maxsize=64)(re.compile)  # compiled when first needed: most never are


def redact_text(text: str) -> str:
    """The text with every secret in it replaced; idempotent."""
    return _short_redacted(text, own_names()) if len(text) <= _SHORT else _redacted(text)


@lru_cache(maxsize=8192)  # the words of a run are the same in all its launches, and in the runs after it
def _short_redacted(text: str, own: tuple[str, ...]) -> str:
    return _redacted(text)


def _redacted(text: str) -> str:
    for _ in range(_MOST_ROUNDS):  # one secret may hide another from the patterns: `mysql -p& -pWORD`
        shown = _replaced(text)
        if shown == text:
            break
        text = shown
    return text


def _replaced(text: str) -> str:
    small = _small(text)
    for hint, pattern, replacement in _RULES:
        if hint in small:
            text = _compiled(pattern).sub(replacement, text)
    return _without_named(text)


def _small(text: str) -> str:
    """In lower case, each letter in its place: one letter would become two."""
    return text.replace("\u0130", "I").lower()


def _without_named(text: str) -> str:
    """Replaces values by their names: `--password x`, `token=x`, `"secret": "x"`, `DB_PASS=x`."""
    keyword, small = _compiled(_keyword(own_names())), _small(text)
    found = keyword.search(small)
    if found is None:
        return text
    named, between, value_of = _compiled(_NAME), _compiled(_BETWEEN), _compiled(_VALUE)
    parts, done = [], 0
    while found is not None:
        start = _beginning(text, found.start(), done)
        name = named.match(text, start)
        at = found.end() if name is None else max(found.end(), name.end())
        sign = between.match(text, at) if name is not None and name.end() == at else None
        value = value_of.match(text, sign.end()) if sign is not None else None
        if name is not None and sign is not None and value is not None:
            hidden = _hidden(name[0], sign[0], value[0], in_url=start > 0 and text[start - 1] in "?&")
            if hidden is not None:
                parts += [text[done : sign.end()], hidden]
                rest = _compiled(_REST).match(text, value.end())
                done = at = value.end() if rest is None or len(value[0]) < _LONGEST_VALUE else rest.end()
        found = keyword.search(small, at)
    return "".join([*parts, text[done:]])


@lru_cache(maxsize=4)
def _keyword(own: tuple[str, ...]) -> str:
    """Includes the longest word of each name of the user: `--seed-phrase` may also be written `SEED_PHRASE`."""
    words = (max(re.findall(r"[^\W_]+", name), key=len, default="") for name in own)
    return "|".join([_KEYWORD, *(re.escape(word) for word in words if word)])


def _beginning(text: str, at: int, least: int) -> int:
    """The start of the name around this position."""
    least = max(least, at - _LONGEST_NAME)
    while at > least and text[at - 1] in _IN_NAME:
        at -= 1
    return at


def _hidden(name: str, sign: str, value: str, *, in_url: bool) -> str | None:
    """The replacement for the value; None if it is not a secret."""
    if sign.isspace() and not name.startswith("-"):
        return None
    is_secret = is_secret_variable if in_url or (name.isupper() and sign == "=") else is_secret_option
    quote = value[0] if value[0] in "'\"" else ""
    return f"{quote}{REDACTED}{quote}" if is_secret(name, value[1:-1] if quote else value) else None


# Replaces secrets in environments, command lines and configurations before anything is written to disk.
#
# Secrets are recognised by name (`--password`, `DB_PASS`) and by shape (a password in a URL, a token of a known service).
# The program itself gets the real values. docs/reference/secrets.md has the rules.


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

"""Recognising secrets in any text by their shape: passwords in URLs and options, tokens of known services, private keys."""

from __future__ import annotations

import re
from functools import lru_cache

from benchwright.core.secrets.names import is_secret_option, is_secret_variable, own_names

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
_compiled = lru_cache(maxsize=64)(re.compile)  # compiled when first needed: most never are


def redact_text(text: str) -> str:
    """The text with every secret in it replaced; idempotent."""
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
    """With the longest word of each name of one's own: `--seed-phrase` may also be written `SEED_PHRASE`."""
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

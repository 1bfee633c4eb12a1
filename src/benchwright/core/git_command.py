"""How git is called: so that it runs no program that a checkout's own configuration names.

A checkout may come from anywhere, and its `.git/config` may name programs for filters, hooks, helpers, ssh and remotes, which
git would start while we only ask for a commit. What the user's own configuration says (that of the account and the machine,
such as git-lfs) still holds, except for hooks and watchers of the file system, which belong to the user's work, not to ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_SETTINGS: tuple[str, ...] = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
)
_SETTINGS += ("core.pager=cat", "advice.detachedHead=false", "protocol.ext.allow=never", "protocol.fd.allow=never")
GIT = ("git", *(word for setting in _SETTINGS for word in ("-c", setting)))  # how every command begins
LISTING = (*GIT, "config", "--list", "--show-scope", "-z")  # prints what `git_variables` needs to know
# Keys that name a program, and what they are without it.
_PROGRAMS = {
    r"filter\..*\.(?:clean|smudge|process)": "",
    r"filter\..*\.required": "false",
    r"(?:credential|credential\..*)\.helper": "",
    r"core\.askpass": "",
    r"gpg(?:\..*)?\.program": "false",
    r"submodule\..*\.update": "checkout",
    r"core\.alternaterefscommand": "true",
    r"core\.sshcommand": "ssh",
}
_REMOTE_PROGRAM = re.compile(
    r"remote\..*\.(?:uploadpack|vcs)", re.DOTALL
)  # git takes the first it finds: not replaceable
_PROGRAM = re.compile("|".join(f"(?:{key})" for key in _PROGRAMS), re.DOTALL)
_OWN_SCOPES = ("local", "worktree")  # of the checkout
# Set where git started us (a hook): they would lead every call to that repository.
_LEADING_ELSEWHERE = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
)


def git_variables(environment: Mapping[str, str], listed: str = "", *, network: bool = True) -> dict[str, str]:
    """The environment of a call of GIT. `listed`: what LISTING printed in that folder. `network`: whether it may reach a remote;
    where the checkout names the program that does, it may not."""
    variables = {name: value for name, value in environment.items() if name not in _LEADING_ELSEWHERE}
    variables |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    own, users = _programs(listed)
    if not network or any(_REMOTE_PROGRAM.fullmatch(_compared(key)) for key in own):
        variables |= {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    variables.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")  # goes before core.sshCommand
    variables.setdefault("GIT_PROXY_COMMAND", "")  # goes before core.gitProxy
    # Not as options, in which a key could not hold an equals sign.
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isascii() and count.isdigit() else 0
    replaced = _replaced(own, users)
    for number, (key, value) in enumerate(replaced, start=first):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables | ({"GIT_CONFIG_COUNT": str(first + len(replaced))} if replaced else {})


def _programs(listed: str) -> tuple[list[str], dict[str, list[str]]]:
    """The keys of programs in the checkout's own configuration, and what the user's own has for such keys."""
    fields = listed.split("\0")
    own: dict[str, None] = {}
    users: dict[str, list[str]] = {}
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.partition("\n")
        if scope in _OWN_SCOPES and (_PROGRAM.fullmatch(_compared(key)) or _REMOTE_PROGRAM.fullmatch(_compared(key))):
            own[key] = None
        elif scope not in _OWN_SCOPES:
            users.setdefault(key, []).append(value)
    return list(own), users


def _replaced(own: Sequence[str], users: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """For each program that the checkout names, what the user's own configuration has in its place, or nothing."""
    settings: list[tuple[str, str]] = []
    for key in own:
        if _PROGRAM.fullmatch(_compared(key)):
            kept = users.get(key, ())
            lists = key.endswith(".helper")  # which an empty value empties
            values = ["", *kept] if lists else kept[-1:] or [_without(key)]
            settings += [(key, value) for value in values]
    return settings


def _compared(key: str) -> str:
    """Sections and names have no case; what stands between them has."""
    section, dot, rest = key.partition(".")
    middle, last_dot, name = rest.rpartition(".")
    return f"{section.lower()}{dot}{middle}{last_dot}{name.lower()}"


def _without(key: str) -> str:
    return next(value for pattern, value in _PROGRAMS.items() if re.fullmatch(pattern, _compared(key), re.DOTALL))

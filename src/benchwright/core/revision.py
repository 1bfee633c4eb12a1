"""Revision: one side of a comparison, as the user names it, such as `main`, `pip:numpy==2.1` or `env:OMP_NUM_THREADS=1`."""

from __future__ import annotations

import re
import shlex
from enum import Enum

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean

TREATMENT, CONTROL = "treatment", "control"
_PREFIX = re.compile(r"([A-Za-z]+):")


class RevisionKind(str, Enum):
    """How two revisions differ."""

    GIT = "git"  # a commit, branch or tag
    PIP = "pip"  # package versions
    ARGS = "args"  # further arguments of the target
    ENV = "env"  # environment variables
    BIN = "bin"  # the program that is measured
    CMD = "cmd"  # the whole command
    OPENAI = "openai"  # the server that is asked


class Revision(msgspec.Struct, frozen=True):
    """`text`: what follows the prefix."""

    kind: RevisionKind
    text: str

    def __str__(self) -> str:
        return self.text if self.kind is RevisionKind.GIT else f"{self.kind.value}:{self.text}"

    def words(self, where: str) -> tuple[str, ...]:
        """The text split as a shell would; InvalidInput where a quote is not closed."""
        try:
            return tuple(shlex.split(self.text))
        except ValueError as error:
            raise InvalidInput(
                f"'{self.text}': {str(error).lower()}", where=where, remedy="close the quotation"
            ) from None

    def variables(self, where: str) -> dict[str, str]:
        """Of `env:A=1 B=2`."""
        found = {}
        for word in self.words(where):
            name, is_set, value = word.partition("=")
            if not is_set or not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise InvalidInput(f"'{word}' sets no variable", where=where, remedy="write env:NAME=VALUE")
            found[name] = value
        return found


class RevisionInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One side: its programs, and the commit they were built from."""

    commit: str | None = None
    commit_time: float | None = None  # seconds since 1970
    version: str | None = None
    programs: dict[str, str] = {}  # name → location; the main one is called `program`


def parse_revision(text: str, where: str) -> Revision:
    """`where`: the option that holds it. Without a prefix it is a git revision."""
    kind, rest = RevisionKind.GIT, text
    if prefix := _PREFIX.match(text):
        known = [kind.value for kind in RevisionKind]
        if prefix[1] not in known:
            remedy = did_you_mean(prefix[1], known) or f"use one of {', '.join(f'{name}:' for name in known)}"
            raise InvalidInput(f"'{prefix[0]}' is no sort of revision", where=where, remedy=remedy)
        kind, rest = RevisionKind(prefix[1]), text[prefix.end() :]
    rest = rest.strip()
    if not rest and kind not in (RevisionKind.ARGS, RevisionKind.ENV):  # as it is, without further ones
        raise InvalidInput(f"'{text}' names no revision", where=where, remedy="such as main, HEAD~3 or pip:numpy==2.1")
    if kind is RevisionKind.GIT and rest.startswith("-"):
        raise InvalidInput(f"'{rest}' is no revision", where=where, remedy="name a commit, branch or tag")
    if kind is not RevisionKind.GIT and kind is not RevisionKind.BIN:
        Revision(kind, rest).words(where)
    return Revision(kind, rest)

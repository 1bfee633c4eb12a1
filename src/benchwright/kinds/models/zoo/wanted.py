"""Requests of `install --zoo` and `--corpus`."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.models.corpora import corpus_folder, shipped_corpora
from benchwright.kinds.models.zoo.catalogue import listed_zoos
from benchwright.kinds.models.zoo.targets import CORPORA

ALWAYS = ("torch", "numpy")  # outputs are checked with numpy, which torch does not bring
_REQUIREMENTS = "requirements.txt"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A zoo or a corpus, and the packages pip installs for it."""

    name: str
    words: tuple[str, ...]
    zoo: str | None = None
    options: tuple[str, ...] = ()  # further ones of the command line


def wanted_of(zoos: Sequence[str], corpora: Sequence[str], python: str, options: Sequence[str] = ()) -> list[Wanted]:
    """InvalidInput for an unknown zoo or corpus."""
    known = listed_zoos(python)
    meant = [(zoo, zoo) for zoo in zoos]
    found: list[Wanted] = []
    for name in corpora:
        folder = corpus_folder(name)
        if os.path.isdir(folder):
            file = os.path.join(folder, _REQUIREMENTS)
            found.append(Wanted(name=name, words=("-r", file) if os.path.isfile(file) else ()))
        elif name in CORPORA:
            meant.append((name, CORPORA[name].partition(":")[0]))
        else:
            remedy = did_you_mean(name, [*shipped_corpora(), *CORPORA]) or "see 'benchwright find --corpora'"
            raise InvalidInput(f"unknown corpus '{name}'", where="--corpus", remedy=remedy)
    for name, zoo in meant:
        if zoo not in known:
            remedy = did_you_mean(zoo, known) or f"use one of {', '.join(known)}"
            raise InvalidInput(f"unknown zoo '{zoo}'", where="--zoo", remedy=remedy)
        found.append(Wanted(name=name, words=known[zoo].packages, zoo=zoo, options=tuple(options)))
    return found


def still_missing(one: Wanted, python: str) -> str | None:
    """Why its models cannot be listed although all was installed; None if they can."""
    if one.zoo is None:
        return None
    zoo = listed_zoos(python, [one.zoo])[one.zoo]
    return zoo.problem or (None if zoo.version else f"{python} does not find it after the install")

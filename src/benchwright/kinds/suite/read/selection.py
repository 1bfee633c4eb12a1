"""`--select` and `--exclude`: choosing entries of a suite."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.suite.read.inheritance import tag_list


class Selection(msgspec.Struct, frozen=True):
    """Names in the order of the suite. `forced`: disabled ones that `--select` names."""

    run: tuple[str, ...]
    disabled: tuple[str, ...]  # meant too, but not enabled: reported as skipped where `--select` is given
    forced: tuple[str, ...] = ()


def choose(entries: dict[str, dict[str, object]], select: Sequence[str], exclude: Sequence[str]) -> Selection:
    """The entries that fit a word of `select` (all, if there is none) and none of `exclude`.

    A word is a name, a group, an install group, a tag, the name of a definition's folder, or a pattern such as `llm-*`.
    InvalidInput for a word that fits nothing.
    """
    wanted, unwanted = _words(select), _words(exclude)
    keys = {name: _keys(name, entry) for name, entry in entries.items()}
    _check_words(wanted, keys, "--select")
    _check_words(unwanted, keys, "--exclude")
    meant = [
        name
        for name, own in keys.items()
        if (not wanted or _fits(wanted, own)) and not (unwanted and _fits(unwanted, own))
    ]
    off = [name for name in meant if not enabled(entries[name])]
    forced = tuple(name for name in off if name in wanted)
    skipped = tuple(name for name in off if name not in wanted)
    left_out = set(skipped)
    return Selection(tuple(name for name in meant if name not in left_out), skipped, forced)


def enabled(entry: dict[str, object]) -> bool:
    """Whether an entry is enabled."""
    return entry.get("enabled") is not False


def _words(given: Sequence[str]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def _keys(name: str, entry: dict[str, object]) -> set[str]:
    found = {name, *(str(tag) for tag in tag_list(entry.get("tags")))}
    found.update(str(entry[key]) for key in ("group", "install_group") if entry.get(key) is not None)
    definition = entry.get("definition")
    if isinstance(definition, dict):
        definition = str(definition.get("git") or "").removesuffix(".git")
    if isinstance(definition, str) and definition:
        found.add(os.path.basename(definition.rstrip("/")))
    return found


def _fits(words: Iterable[str], keys: set[str]) -> bool:
    for word in words:
        if word in keys or word == "*":
            return True
        if _is_pattern(word) and any(fnmatch.fnmatchcase(key, word) for key in keys):
            return True
    return False


def _is_pattern(word: str) -> bool:
    return any(character in word for character in "*?[")


def _check_words(words: Iterable[str], keys: dict[str, set[str]], option: str) -> None:
    known: set[str] = set().union(*keys.values()) if keys else set()
    for word in words:
        if word != "*" and not _fits((word,), known):
            raise InvalidInput(
                f"no benchmark, tag or group is called '{word}'",
                where=option,
                remedy=did_you_mean(word, sorted(known)) or "see the names with: benchwright resolve SUITE",
            )

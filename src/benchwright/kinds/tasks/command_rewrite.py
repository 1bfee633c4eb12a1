"""Flags of a command, written over from the command line. Only the named flag and its value are ever touched."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence

import msgspec

from benchwright.kinds.command_words import Word, read_line

_DEVICE_LIST = re.compile(r"[0-9]+(,[0-9]+)+,?", re.ASCII)
_NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d)")


class Edit(msgspec.Struct, frozen=True):
    """Replaces the word `index` by `words`; without words, removes it."""

    index: int
    words: tuple[str, ...] = ()


class FlagChange(msgspec.Struct, frozen=True):
    """`value` for `flag`, dashes included; None removes the flag. `add`: append it where the command lacks it.

    `counts_devices`: the value is a number of devices, and a list of devices is replaced by a list of that many.
    """

    flag: str
    value: str | None
    add: bool = False
    counts_devices: bool = False


class Rewritten(msgspec.Struct, frozen=True):
    """The command after the changes, and the changes that could not be made: the flag is absent, or cannot be added."""

    line: str
    missing: tuple[FlagChange, ...] = ()


def flag_token(name: str) -> str:
    """`batch-size` → `--batch-size`; a name that brings its dashes keeps them."""
    return name if name.startswith("-") else "--" + name


def gpus_change(num_gpus: int) -> FlagChange:
    """`--gpus` for that many GPUs. 0 removes the flag. It is never added: many commands take their GPUs in other ways."""
    return FlagChange("--gpus", str(num_gpus) if num_gpus else None, counts_devices=True)


def rewrite_line(line: str, changes: Sequence[FlagChange]) -> Rewritten:
    """`line` with the changes; its other words, spacing and quoting stay as they are. The line's quotes are closed."""
    missing = []
    for change in changes:
        words = read_line(line).words
        edits = flag_edits(words, change)
        if edits:
            line = _apply(line, words, edits)
        elif change.value is None:
            continue
        elif change.add and not any(word.operator or line[word.start] == "#" for word in words):
            line = f"{line.rstrip()} {change.flag} {shlex.quote(change.value)}"
        else:
            missing.append(change)
    return Rewritten(line, tuple(missing))


def flag_edits(words: Sequence[Word], change: FlagChange) -> list[Edit]:
    """Changes by word; none if the flag is not there. `--flag value` and `--flag=value` both count."""
    edits = []
    for index, word in enumerate(words):
        if word.operator:
            continue
        name, equals, old = word.text.partition("=")
        if name != change.flag:
            continue
        follower = words[index + 1] if index + 1 < len(words) and not equals else None
        if follower is not None and not _is_value(follower):
            follower = None
        if change.value is None:
            edits += [Edit(index)] if follower is None else [Edit(index), Edit(index + 1)]
        elif equals:
            edits.append(Edit(index, (f"{name}={_new_value(change, change.value, old)}",)))
        elif follower is not None:
            edits.append(Edit(index + 1, (_new_value(change, change.value, follower.text),)))
        else:
            edits.append(Edit(index, (name, change.value)))
    return edits


def nearest_flag(line: str, flag: str) -> str | None:
    """The flag of the command that was probably meant: `--kv-store` for `--kvstore`."""
    flags = [w.text.partition("=")[0] for w in read_line(line).words if not w.operator and w.text.startswith("-")]
    near = difflib.get_close_matches(flag, [f for f in flags if f != flag], n=1, cutoff=0.7)
    return near[0] if near else None


def _new_value(change: FlagChange, value: str, old: str) -> str:
    """The replacement for `old`. A list of devices stays a list: `--gpus 1,0,2,3` for 8 GPUs becomes `0,1,2,3,4,5,6,7`,
    since `8` would name the ninth device; a list that already has that many is kept, its order may be meant."""
    if not change.counts_devices or not _DEVICE_LIST.fullmatch(old):
        return value
    if len(old.strip(",").split(",")) == int(value):
        return old
    return ",".join(str(device) for device in range(int(value)))


def _is_value(word: Word) -> bool:
    if word.operator:
        return False
    return not word.text.startswith("-") or word.text == "-" or _NEGATIVE_NUMBER.match(word.text) is not None


def _apply(line: str, words: Sequence[Word], edits: Sequence[Edit]) -> str:
    for edit in reversed(edits):
        word = words[edit.index]
        before, after = line[: word.start], line[word.end :]
        if edit.words == (word.text,):
            continue
        if not edit.words and (not after or after[0].isspace()):
            before = before.rstrip(" \t")  # the space before a removed word goes with it
        line = before + " ".join(map(shlex.quote, edit.words)) + after
    return line

"""`--override a.b=c`: the last layer of a suite, given on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.suite.read.keys import EVERY, entry_problem
from benchwright.kinds.yaml.values import parse_yaml

WHERE = "--override"
_OWN_KEYS = ("argv", "env", "metrics", "labels", "matrix")  # what follows is one key, whatever it holds


class Override(msgspec.Struct, frozen=True):
    """`text` as written; `path` begins with the name of an entry."""

    text: str
    path: tuple[str, ...]
    value: Any

    def layer(self) -> dict[str, Any]:
        """The override as a map."""
        value = self.value
        for key in reversed(self.path):
            value = {key: value}
        return {self.path[0]: value[self.path[0]]}

    def error(self, what: str, remedy: str | None) -> InvalidInput:
        return InvalidInput(what, where=WHERE, remedy=remedy, text=self.text)


def parse_override(text: str, names: Iterable[str]) -> Override | None:
    """The override in `text` of one of the entries `names`, or of all (`*`); None if it names another."""
    path, equals, written = text.partition("=")
    if not equals or "." not in path.strip("."):
        raise InvalidInput(
            f"'{text}' is not ENTRY.KEY=VALUE", where=WHERE, remedy="write resnet50.argv.--batch-size=64 or *.weight=1"
        )
    fitting = [name for name in (*names, EVERY) if path.startswith(name + ".")]
    if not fitting:
        return None
    name = max(fitting, key=len)
    override = Override(text, (name, *_keys(path[len(name) + 1 :])), _value(text, written))
    problem = entry_problem(override.layer()[name])
    if problem is not None:
        raise override.error(problem.what, problem.remedy)
    if "inherits" in override.path[1:2] and name == EVERY:
        raise override.error("'*' cannot inherit", "say it of an entry")
    return override


def unknown_entry(text: str, names: Sequence[str]) -> InvalidInput:
    """The error for an override of an unknown entry."""
    named = text.partition("=")[0].partition(".")[0]
    remedy = did_you_mean(named, names) or f"name an entry of the suite, or {EVERY} for all"
    return InvalidInput(f"the suite has no entry '{named}'", where=WHERE, remedy=remedy, text=text)


def _keys(path: str) -> list[str]:
    keys = path.split(".")
    for own in _OWN_KEYS:
        if own in keys[:-1]:
            at = keys.index(own)
            return [*keys[: at + 1], ".".join(keys[at + 1 :])]
    return keys


def _value(text: str, written: str) -> object:
    if re.fullmatch(r"\$?\{[A-Za-z_][\w.]*\}", written.strip()):
        return written.strip()  # a placeholder, not the map with one empty key that YAML sees in it
    try:
        return parse_yaml(written, WHERE, extras=True).value
    except InvalidInput as error:
        raise InvalidInput(error.what, where=WHERE, remedy=error.remedy, text=text) from None

"""Kinds of values in a suite file: each checks a value, says what is wrong with it, and writes itself as JSON Schema.

`null` is right everywhere: it says nothing. Where one word is wanted, `${…}` is right too: what it stands for is checked later.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.numbers.quantities import parse_duration
from benchwright.kinds.suite.yaml.merge import DELETE


class Problem(NamedTuple):
    """What is wrong, at the end of `path` (its key, if `at_key`), and what to do."""

    path: tuple[Any, ...]
    what: str
    remedy: str | None
    at_key: bool = False

    def below(self, key: Any) -> Problem:
        return self._replace(path=(key, *self.path))


class ValueKind(Protocol):
    """One kind of value."""

    @property
    def says(self) -> str: ...

    def problem(self, value: Any, name: str) -> Problem | None:
        """What is wrong with `value`, which is called `name` in the message; None: nothing."""
        ...

    def schema(self) -> dict[str, Any]: ...


def interpolated(value: Any) -> bool:
    """Whether another key is to be put in its place."""
    return isinstance(value, str) and "${" in value


def shown(value: Any) -> str:
    """A value, short, as a user would write it."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = str(value)
    text = text if len(text) <= 40 else text[:39] + "…"
    return f"'{text}'" if isinstance(value, str) else text


class Simple(msgspec.Struct, frozen=True):
    """A value that is one word."""

    says: str
    example: str = ""

    def right(self, value: Any) -> bool:
        raise NotImplementedError

    def problem(self, value: Any, name: str) -> Problem | None:
        if value is None or self.right(value) or interpolated(value):
            return None
        return Problem((), f"{name} is {shown(value)}, not {self.says}", f"write {self.example}")

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError


class Text(Simple, frozen=True):
    says: str = "text"
    example: str = "it in quotes"

    def right(self, value: Any) -> bool:
        return isinstance(value, str)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"]}


class Scalar(Simple, frozen=True):
    says: str = "one value"
    example: str = "text or a number"

    def right(self, value: Any) -> bool:
        return isinstance(value, str | int | float)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "null"]}


class Flag(Simple, frozen=True):
    says: str = "true or false"
    example: str = "true or false"

    def right(self, value: Any) -> bool:
        return isinstance(value, bool)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": ["boolean", "null"]}, _REFERENCE]}


class Number(Simple, frozen=True):
    says: str = "a number"
    example: str = "a number"
    least: float = -math.inf
    whole: bool = False

    def right(self, value: Any) -> bool:
        number = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        return number and self.least <= value < math.inf

    def schema(self) -> dict[str, Any]:
        kind: dict[str, Any] = {"type": ["integer" if self.whole else "number", "null"]}
        if self.least > -math.inf:
            kind["minimum"] = self.least
        return {"anyOf": [kind, _REFERENCE]}


def count(least: int, what: str) -> Number:
    """A whole number of something."""
    return Number(says=what, example=f"{least} or more", least=least, whole=True)


class Duration(Simple, frozen=True):
    says: str = "a duration"
    example: str = "600 (seconds), 90s, 10m or 2h"

    def right(self, value: Any) -> bool:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return 0 < value < math.inf
        try:
            return isinstance(value, str) and parse_duration(value) > 0
        except InvalidInput:
            return False

    def schema(self) -> dict[str, Any]:
        pattern = r"^\s*([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(ms|s|m|min|h|d)?\s*$"
        return {
            "anyOf": [
                {"type": ["number", "null"], "exclusiveMinimum": 0},
                {"type": "string", "pattern": pattern},
                _REFERENCE,
            ]
        }


class Choice(msgspec.Struct, frozen=True):
    """One of several words."""

    noun: str
    words: tuple[str, ...]

    @property
    def says(self) -> str:
        return self.noun

    def problem(self, value: Any, name: str) -> Problem | None:
        if value is None or (isinstance(value, str) and value in self.words) or interpolated(value):
            return None
        near = did_you_mean(value, self.words) if isinstance(value, str) else None
        return Problem((), f"{shown(value)} is not {self.noun}", near or f"use one of {', '.join(self.words)}")

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"enum": [*self.words, None]}, _REFERENCE]}


class Anything(msgspec.Struct, frozen=True):
    """Kept as it is."""

    says: str = "anything"

    def problem(self, value: Any, name: str) -> Problem | None:
        return None

    def schema(self) -> dict[str, Any]:
        return {}


class ListOf(msgspec.Struct, frozen=True):
    """A list, or `{append: […]}`, which makes an inherited list longer."""

    item: Any  # a ValueKind

    @property
    def says(self) -> str:
        return "a list"

    def problem(self, value: Any, name: str) -> Problem | None:
        if value is None:
            return None
        if isinstance(value, dict) and list(value) == ["append"] and not isinstance(value["append"], dict):
            found = self.problem(value["append"], name)
            return found and found.below("append")
        if not isinstance(value, list):
            return Problem((), f"{name} is {shown(value)}, not a list", "write [a, b], or one item a line behind '- '")
        for index, item in enumerate(value):
            found = self.item.problem(item, f"an item of {name}")
            if found is not None:
                return Problem((index, *found.path), found.what, found.remedy)
        return None

    def schema(self) -> dict[str, Any]:
        items = {"type": "array", "items": self.item.schema()}
        append = {
            "type": "object",
            "properties": {"append": {"anyOf": [items, {"type": "null"}]}},
            "required": ["append"],
            "additionalProperties": False,
        }
        return {"anyOf": [items, append, {"type": "null"}]}


class MapOf(msgspec.Struct, frozen=True):
    """A map with keys of the user's choice."""

    value: Any  # a ValueKind

    @property
    def says(self) -> str:
        return "a map"

    def problem(self, value: Any, name: str) -> Problem | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            return Problem((), f"{name} is {shown(value)}, not a map", "write one 'key: value' a line below it")
        for key, item in value.items():
            if item is not DELETE:
                found = self.value.problem(item, f"{key} of {name}")
                if found is not None:
                    return Problem((key, *found.path), found.what, found.remedy)
        return None

    def schema(self) -> dict[str, Any]:
        return {"type": ["object", "null"], "additionalProperties": self.value.schema()}


class Either(msgspec.Struct, frozen=True):
    """Any of several kinds; what is wrong is explained by the one that comes nearest."""

    kinds: tuple[Any, ...]

    @property
    def says(self) -> str:
        return " or ".join(kind.says for kind in self.kinds)

    def problem(self, value: Any, name: str) -> Problem | None:
        best: Problem | None = None
        remedy = None
        for kind in self.kinds:
            found = kind.problem(value, name)
            if found is None:
                return None
            remedy = remedy or found.remedy
            wants_words = isinstance(kind, Choice) and isinstance(value, str)
            if found.path or wants_words or (isinstance(kind, Table) and isinstance(value, dict)):
                best = found
        return best or Problem((), f"{name} is {shown(value)}, not {self.says}", remedy)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [kind.schema() for kind in self.kinds]}


class Key(msgspec.Struct, frozen=True):
    """A key of a Table and what it means."""

    name: str
    kind: Any  # a ValueKind
    meaning: str


class Table(msgspec.Struct, frozen=True):
    """A map with known keys. `open`: others are left alone, unless they look like a misspelt one."""

    noun: str
    keys: Mapping[str, Key]
    open: bool = False

    @property
    def says(self) -> str:
        return "a map"

    def problem(self, value: Any, name: str) -> Problem | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            return Problem((), f"{name} is {shown(value)}, not a map", f"it has the keys {', '.join(self.keys)}")
        for key, item in value.items():
            known = self.keys.get(key)
            if known is None:
                found = self.unknown(key)
            elif item is DELETE:
                continue
            else:
                found = known.kind.problem(item, key)
            if found is not None:
                return found.below(key)
        return None

    def unknown(self, key: Any) -> Problem | None:
        """What is wrong with a key that is not known; None: nothing."""
        word = str(key)
        if self.open and not (isinstance(key, str) and difflib.get_close_matches(word, self.keys, n=1, cutoff=0.85)):
            return None
        near = did_you_mean(word, self.keys)
        return Problem((), f"'{key}' is not a key of {self.noun}", near or f"use {', '.join(self.keys)}", at_key=True)

    def schema(self) -> dict[str, Any]:
        return {
            "type": ["object", "null"],
            "properties": {k.name: {"description": k.meaning, **k.kind.schema()} for k in self.keys.values()},
            "additionalProperties": self.open,
        }


def table(noun: str, keys: Sequence[Key], *, open: bool = False) -> Table:
    return Table(noun, {key.name: key for key in keys}, open)


_REFERENCE = {"type": "string", "pattern": r"\$\{"}

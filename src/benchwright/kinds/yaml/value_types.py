"""Types of values in suites, system files, scaling files and specifications: each checks a value, says what is wrong with
it, and writes itself as JSON Schema.

`null` always passes: it says nothing. So does `${…}` where one word is wanted: what it stands for is checked later.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.quantities import parse_duration, parse_size
from benchwright.kinds.text_file import Path, Remark, TextPlace
from benchwright.kinds.yaml.merge import DELETE

Schema = dict[str, Any]
FREE = ("x-", "_")  # keys that begin so are the user's own
_LARGEST = 1 << 62
_OCTETS = re.compile(r"(?<=[0-9 kKMGT])(i?)o$")  # French: Go is GB, Gio is GiB
_REFERENCE: Schema = {"type": "string", "pattern": r"\$\{"}


class Problem(NamedTuple):
    """A problem at the end of `path` (at its key, if `at_key`), and its remedy."""

    path: tuple[Any, ...]
    what: str
    remedy: str | None
    at_key: bool = False

    def below(self, key: object) -> Problem:
        return self._replace(path=(key, *self.path))


class ValueType(Protocol):
    """One type of value."""

    @property
    def says(self) -> str: ...

    def problem(self, value: object, name: str) -> Problem | None:
        """The problem with `value`, called `name` in the message; None if there is none."""
        ...

    def schema(self) -> Schema: ...


def shown(value: object) -> str:
    """A value, short, as a user would write it."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = as_text(value)
    text = text if len(text) <= 40 else text[:39] + "…"
    return f"'{text}'" if isinstance(value, str) else text


def as_text(value: object) -> str:
    """In full. Python refuses to write very long numbers, which a file may hold."""
    try:
        return str(value)
    except ValueError:
        return "a number without end"


class WordType(msgspec.Struct, frozen=True):
    """A value that is one word. `words`: those to choose from."""

    says: str
    example: str
    right: Callable[[Any], bool]
    json: Schema
    words: tuple[str, ...] = ()
    refers: bool = True  # whether `${…}` may stand for it

    def problem(self, value: object, name: str) -> Problem | None:
        if value is None or self.right(value) or (self.refers and isinstance(value, str) and "${" in value):
            return None
        if self.words:
            near = did_you_mean(value, self.words) if isinstance(value, str) else None
            return Problem((), f"{shown(value)} is not {self.says}", near or f"use one of {self.example}")
        return Problem((), f"{name} is {shown(value)}, not {self.says}", f"write {self.example}")

    def schema(self) -> Schema:
        return self.json


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_duration(value: Any) -> bool:
    if _is_number(value):
        return bool(0 < value < math.inf)
    try:
        return isinstance(value, str) and parse_duration(value) > 0
    except InvalidInput:
        return False


def text(says: str = "text", example: str = "it in quotes") -> WordType:
    return WordType(says, example, lambda value: isinstance(value, str), {"type": ["string", "null"]})


def number(
    says: str = "a number", example: str = "a number", least: float = -math.inf, *, whole: bool = False
) -> WordType:
    kind: Schema = {"type": ["integer" if whole else "number", "null"]}
    if least > -math.inf:
        kind["minimum"] = least

    def right(value: Any) -> bool:
        return _is_number(value) and (not whole or isinstance(value, int)) and bool(least <= value < math.inf)

    return WordType(says, example, right, {"anyOf": [kind, _REFERENCE]})


def count(least: int, what: str) -> WordType:
    """A whole number of something."""
    return number(what, f"{least} or more", least, whole=True)


def choice(noun: str, words: tuple[str, ...]) -> WordType:
    """One of several words."""
    right = lambda value: isinstance(value, str) and value in words  # noqa: E731
    return WordType(noun, ", ".join(words), right, {"anyOf": [{"enum": [*words, None]}, _REFERENCE]}, words)


SCALAR = WordType(
    "one value",
    "text or a number",
    lambda value: isinstance(value, str | int | float),
    {"type": ["string", "number", "boolean", "null"]},
)
FLAG = WordType(
    "true or false",
    "true or false",
    lambda value: isinstance(value, bool),
    {"anyOf": [{"type": ["boolean", "null"]}, _REFERENCE]},
)
ANYTHING = WordType("anything", "", lambda value: True, {})
DURATION = WordType(
    "a duration",
    "600 (seconds), 90s, 10m or 2h",
    _is_duration,
    {
        "anyOf": [
            {"type": ["number", "null"], "exclusiveMinimum": 0},
            {"type": "string", "pattern": r"^\s*([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(ms|s|m|min|h|d)?\s*$"},
            _REFERENCE,
        ]
    },
)


class ListOf(msgspec.Struct, frozen=True):
    """A list, or, if it `grows`, `{append: […]}`, which makes an inherited list longer."""

    item: ValueType
    says: str = "a list"
    grows: bool = True

    def problem(self, value: Any, name: str) -> Problem | None:
        if value is None:
            return None
        if (
            self.grows
            and isinstance(value, dict)
            and list(value) == ["append"]
            and not isinstance(value["append"], dict)
        ):
            found = self.problem(value["append"], name)
            return found and found.below("append")
        if not isinstance(value, list):
            return Problem((), f"{name} is {shown(value)}, not a list", "write [a, b], or one item a line behind '- '")
        for index, item in enumerate(value):
            found = self.item.problem(item, f"an item of {name}")
            if found is not None:
                return found.below(index)
        return None

    def schema(self) -> Schema:
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

    value: ValueType
    says: str = "a map"

    def problem(self, value: Any, name: str) -> Problem | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            return Problem((), f"{name} is {shown(value)}, not a map", "write one 'key: value' a line below it")
        for key, item in value.items():
            if item is not DELETE:
                found = self.value.problem(item, f"{key} of {name}")
                if found is not None:
                    return found.below(key)
        return None

    def schema(self) -> Schema:
        return {"type": ["object", "null"], "additionalProperties": self.value.schema()}


class Either(msgspec.Struct, frozen=True):
    """Any of several types; the one that fits deepest into the value explains what is wrong."""

    types: tuple[ValueType, ...]

    @property
    def says(self) -> str:
        return " or ".join(one.says for one in self.types)

    def problem(self, value: object, name: str) -> Problem | None:
        best: Problem | None = None
        remedy = None
        for one in self.types:
            found = one.problem(value, name)
            if found is None:
                return None
            remedy = remedy or found.remedy
            wants_words = isinstance(one, WordType) and bool(one.words) and isinstance(value, str)
            fits = found.path or wants_words or (isinstance(one, Table) and isinstance(value, dict))
            if fits and (best is None or len(found.path) >= len(best.path)):
                best = found
        return best or Problem((), f"{name} is {shown(value)}, not {self.says}", remedy)

    def schema(self) -> Schema:
        return {"anyOf": [one.schema() for one in self.types]}


class Key(NamedTuple):
    """A key of a Table: its type and its meaning."""

    type: ValueType
    meaning: str


class Table(msgspec.Struct, frozen=True):
    """A map with known keys. `open`: others are left alone, unless they look like a misspelt one; `any_key`: even then;
    `free`: the user's own are."""

    noun: str
    keys: Mapping[str, Key]
    open: bool = False
    free: bool = False
    any_key: bool = False
    says: str = "a map"

    def problem(self, value: object, name: str) -> Problem | None:
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
                found = known.type.problem(item, key)
            if found is not None:
                return found.below(key)
        return None

    def unknown(self, key: object) -> Problem | None:
        """The problem with an unknown key; None if it is allowed."""
        word = as_text(key)
        if self.any_key or (self.free and word.startswith(FREE)):
            return None
        if self.open and not (isinstance(key, str) and difflib.get_close_matches(word, self.keys, n=1, cutoff=0.85)):
            return None
        near = did_you_mean(word, self.keys)
        return Problem((), f"'{word}' is not a key of {self.noun}", near or f"use {', '.join(self.keys)}", at_key=True)

    def schema(self) -> Schema:
        return {
            "type": ["object", "null"],
            "properties": {name: {"description": key.meaning, **key.type.schema()} for name, key in self.keys.items()},
            "additionalProperties": self.open or self.any_key,
        }


# Of files that no other is merged with, and that have no placeholders but their own.
PLAIN_TEXT = WordType(
    "text", "it in quotes", lambda v: isinstance(v, str) or _is_number(v), {"type": ["string", "number", "null"]}
)
PLAIN_FLAG = msgspec.structs.replace(FLAG, refers=False)
PLAIN_NUMBER = msgspec.structs.replace(number(), refers=False)


def _is_capacity(value: object) -> bool:
    try:
        parse_capacity(value)
    except InvalidInput:
        return False
    return True


def parse_capacity(value: object) -> int | None:
    """Bytes; None for `All`, the whole of the device. InvalidInput, without a place, if it is no amount of memory."""
    text = as_text(value).strip()
    if text.lower() == "all":
        return None
    try:
        if isinstance(value, str) or _is_number(value):
            return parse_size(_OCTETS.sub(r"\1B", text).replace("k", "K"))
    except (InvalidInput, OverflowError):
        pass
    raise InvalidInput(f"'{text}' is not {CAPACITY.says}", remedy=f"write {CAPACITY.example}")


CAPACITY = WordType(
    "an amount of memory",
    "80GiB or 81920 MiB, or All",
    _is_capacity,
    {"type": ["string", "number", "null"]},
    refers=False,
)


def plain_list(item: ValueType) -> ListOf:
    return ListOf(item, grows=False)


def plain_table(noun: str, **types: ValueType) -> Table:
    return Table(noun, {name: Key(of, "") for name, of in types.items()}, free=True)


def whole(least: int = 0, most: int | None = None) -> WordType:
    """A whole number in a range."""
    span = f"of {least} or more" if most is None else f"from {least} to {most}"

    def right(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= (most or _LARGEST)

    return WordType(f"a whole number {span}", "one", right, {"type": ["integer", "null"]}, refers=False)


class PlacedValues(Protocol):
    """A file's values, each with its place."""

    @property
    def path(self) -> str: ...

    @property
    def value(self) -> Any: ...

    @property
    def remarks(self) -> Sequence[Remark]: ...

    def place(self, path: Path, *, key: bool = False) -> TextPlace: ...

    def error(self, what: str, path: Path = (), remedy: str | None = None, *, key: bool = False) -> InvalidInput: ...


def check(file: PlacedValues, of: ValueType, name: str, path: Path = ()) -> None:
    """InvalidInput that points at what is wrong below `path`."""
    problem = of.problem(value_at(file.value, path), name)
    if problem is not None:
        raise file.error(problem.what, (*path, *problem.path), problem.remedy, key=problem.at_key)


def value_at(value: object, path: Path) -> Any:
    """The value there; None if there is none."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value

"""The file of a specification: JSON, or YAML with the same keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.kinds.text_file import LONGEST_SHOWN, Path, Remark, TextPlace, appears_twice, read_text
from benchwright.kinds.yaml.values import parse_yaml

if TYPE_CHECKING:
    pass
    from benchwright.kinds.yaml.value_types import PlacedValues
    from benchwright.kinds.yaml.values import YamlFile


# JSON files as plain values, with the place of each of them at hand for errors.
#
# Python's parser reads the file. Only an error needs places; then the text is walked once more to the value it is about.


_SPACE = re.compile(r"[ \t\n\r]*")
_REMEDIES = {
    "Expecting property name enclosed in double quotes": "write the key in double quotes, or remove the comma before }",
    "Illegal trailing comma before end of object": "remove the comma",
    "Illegal trailing comma before end of array": "remove the comma",
    "Expecting ',' delimiter": "put a comma between values, or close the { or [ that was opened",
    "Expecting ':' delimiter": "put a colon between key and value",
    "Unterminated string": "close the quote",
    "Invalid control character": "write a tab as \\t and a line's end as \\n, and close the quote",
    "Invalid \\escape": "write a backslash as \\\\",
    "Extra data": "put one value in a file",
}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)
_decode = json.JSONDecoder().raw_decode


class JsonFile(msgspec.Struct, frozen=True):
    """`path` is as the user wrote it."""

    path: str
    text: str
    value: Any = None
    remarks: tuple[Remark, ...] = ()

    def place(self, path: Path, *, key: bool = False) -> TextPlace:
        """The place of the value at `path`, or of its key; of the nearest value around it if there is none."""
        at = _skip(self.text, 0)
        for part in path:
            found = _step(self.text, at, part)
            if found is None:
                break
            at_key, at = found
        else:
            if key and path:
                at = at_key
        return _place(self.text, at)

    def error(self, what: str, path: Path = (), remedy: str | None = None, *, key: bool = False) -> InvalidInput:
        """An InvalidInput that points at the value at `path`, or at its key."""
        return _error(self.path, self.text, what, self.place(path, key=key), remedy)


def parse_json(text: str, path: str) -> JsonFile:
    """InvalidInput points at what is wrong. A byte order mark is skipped."""
    text = text.removeprefix("\ufeff")
    is_doubled = False

    def pairs(found: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_doubled
        made = dict(found)
        is_doubled = is_doubled or len(made) < len(found)
        return made

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse)
    except _NotJson as error:
        at = _constant(text, error.word)
        raise _error(path, text, f"{error.word} is not JSON", _place(text, at), "write a number") from None
    except json.JSONDecodeError as error:
        what = "the file is empty" if not text.strip() else f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        remedy = next((r for part, r in _REMEDIES.items() if error.msg.startswith(part)), "check commas and quotes")
        raise _error(path, text, what, TextPlace(error.lineno, error.colno), remedy) from None
    except RecursionError:
        raise InvalidInput("values are nested too deep", where=path, remedy="take some levels out") from None
    except ValueError:  # Python refuses to read a number of thousands of digits
        raise InvalidInput("a number is too long", where=path, remedy="write it shorter") from None
    return JsonFile(path, text, value, tuple(_doubled_keys(text)) if is_doubled else ())


def _doubled_keys(text: str) -> Iterator[Remark]:
    """A remark for each key that an object already has."""
    opened: list[dict[str, int]] = []  # for each object or list around this place: where its keys are
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            opened.append({})
        elif token[0] in "}]":
            opened.pop()
        elif text.startswith(":", _skip(text, token.end())):
            key: str = json.loads(token[0])
            first = opened[-1].setdefault(key, token.start())
            if first != token.start():
                what = appears_twice(key, _place(text, first).line)
                yield Remark(what, _place(text, token.start()).line)


class _NotJson(Exception):
    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def _refuse(word: str) -> Any:
    raise _NotJson(word)


def _constant(text: str, word: str) -> int:
    """Where `word` stands outside of strings."""
    for found in re.finditer(rf'"(?:[^"\\]|\\.)*"|{re.escape(word)}', text, re.S):
        if found[0] == word:
            return found.start()
    return 0


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _step(text: str, at: int, part: object) -> tuple[int, int] | None:
    """Where the key and the value of `part` begin, in the object or list at `at`. Of a key that is given twice, the last."""
    opened = text[at : at + 1]
    if opened not in "{[" or not opened:
        return None
    found, number = None, 0
    at = _skip(text, at + 1)
    while text[at : at + 1] not in ("}", "]", ""):
        at_key, here = at, number == part
        if opened == "{":
            key, at = _decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # the colon
            here = key == part
        if here:
            found = (at_key, at)
        _, at = _decode(text, at)
        number += 1
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return found


def _place(text: str, at: int) -> TextPlace:
    start = text.rfind("\n", 0, at) + 1
    return TextPlace(text.count("\n", 0, at) + 1, at - start + 1)


def _error(path: str, text: str, what: str, place: TextPlace, remedy: str | None) -> InvalidInput:
    lines = text.split("\n")
    line = lines[place.line - 1].rstrip("\r") if place.line <= len(lines) else ""
    shown = line if len(line) <= LONGEST_SHOWN else None
    return InvalidInput(what, where=path, line=place.line, column=place.column, remedy=remedy, text=shown)


YAML = (".yaml", ".yml")
_SNIFFED_BYTES = 256 << 10
_JSON_KEY = re.compile(rb'"(model|tests|meta|benchmarks)"\s*:')
_YAML_KEY = re.compile(rb"""^["']?(model|tests|meta|benchmarks)["']?\s*:(?!\s*\S*://)""", re.M)


def is_yaml(path: str) -> bool:
    return path.lower().endswith(YAML)


def load(path: str) -> PlacedValues:
    """InvalidInput points at what is not JSON or YAML. A key whose value is null is not there."""
    file = _parsed(path)
    return msgspec.structs.replace(file, value=_without_nulls(file, file.value, ()))


def _without_nulls(file: PlacedValues, value: Any, path: tuple[object, ...]) -> Any:
    if isinstance(value, dict):
        kept = {key: inner for key, inner in value.items() if inner is not None}
        return {key: _without_nulls(file, inner, (*path, key)) for key, inner in kept.items()}
    if isinstance(value, list):
        if None in value:
            raise file.error("null stands for nothing in a list", (*path, value.index(None)), "remove it")
        return [_without_nulls(file, inner, (*path, at)) for at, inner in enumerate(value)]
    return value


def _parsed(path: str) -> YamlFile | JsonFile:
    # Imported here: whether a file is a specification is asked about every target.

    text = read_text(path, kind="specification")
    if is_yaml(path):
        return parse_yaml(text, path)

    return parse_json(text, path)


def looks_like_one(path: str) -> bool:
    """Whether its keys are a specification's: a model with tests, or meta with benchmarks, even in a file that was cut off."""
    if not path.lower().endswith((".json", *YAML)):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_SNIFFED_BYTES)
    except (OSError, ValueError):
        return False
    found = {match.decode() for match in (_YAML_KEY if is_yaml(path) else _JSON_KEY).findall(head)}
    if {"model", "tests"} <= found or {"meta", "benchmarks"} <= found:
        return True
    if is_yaml(path):
        return False
    return bool(re.match(rb'\s*\{\s*"(model|meta)"\s*:\s*\{', head)) and not os.path.basename(path).startswith(".")

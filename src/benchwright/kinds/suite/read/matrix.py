"""An entry with a `matrix`: replaced by one entry for each combination of its values, made from its `job`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from benchwright.core.errors import did_you_mean
from benchwright.kinds.suite.read.keys import JOB
from benchwright.kinds.suite.read.places import Places

MATRIX = "matrix"
MOST_COMBINATIONS = 10_000
_PLACEHOLDER = re.compile(
    r"\{\{|\}\}|\{(?P<key>[^{}:!]+)(?::(?P<form>[<>=^]?[+-]?\d{0,3}(?:\.\d{1,2})?[bdeEfFgGosxX%]?))?\}"
)
_FILLED = (("argv",), ("client", "argv"), ("server", "argv"))


class Expanded(NamedTuple):
    """Entries without matrices; `made`: entry → the entry whose matrix made it."""

    entries: dict[str, Any]
    made: dict[str, str]


def expand_matrices(entries: dict[str, Any], places: Places) -> Expanded:
    """The entries, every one with a matrix replaced by those it makes."""
    if not any(MATRIX in entry for entry in entries.values()):
        return Expanded(entries, {})
    expanded = Expanded({}, {})
    for name, entry in entries.items():
        if MATRIX not in entry or _is_made(entry):
            _add(expanded.entries, name, entry, name, places)
            continue
        for values in _combinations(name, entry, places):
            made_name, made = _made(name, entry[JOB], values, places)
            _add(expanded.entries, made_name, made, name, places)
            expanded.made[made_name] = name
    return expanded


def _is_made(entry: dict[str, object]) -> bool:
    """Whether a matrix already made this entry, as `resolve` prints it: each key of its matrix has one value."""
    matrix = entry[MATRIX]
    return JOB not in entry and isinstance(matrix, dict) and not any(isinstance(v, list) for v in matrix.values())


def combinations(matrix: dict[str, object]) -> Iterator[dict[str, object]]:
    """Every combination of values; the first key changes fastest. A value that is not a list counts as one."""
    choices = [value if isinstance(value, list) else [value] for value in matrix.values()]
    for values in product(*reversed(choices)):  # the last key's loop is the outermost, as in milabench
        yield dict(zip(map(str, matrix), reversed(values), strict=True))


def fill(text: str, values: dict[str, object]) -> str:
    """`text` with `{key}` filled for the keys of `values`; every other placeholder, and `{{`, stays as it is."""

    def filled(match: re.Match[str]) -> str:
        if match["key"] is None or match["key"] not in values:
            return match[0]
        try:
            return format(values[match["key"]], match["form"] or "")
        except (ValueError, TypeError):
            return match[0]

    return _PLACEHOLDER.sub(filled, text)


def _combinations(name: str, entry: dict[str, object], places: Places) -> Iterator[dict[str, object]]:
    matrix = entry[MATRIX]
    if not isinstance(entry.get(JOB), dict):
        raise places.error(
            name, (MATRIX,), f"'{name}' has a matrix but no job", "add job: with a name and argv", key=True
        )
    if not isinstance(matrix, dict) or not matrix:
        raise places.error(name, (MATRIX,), "the matrix is empty", "write key: [value, …] below it", key=True)
    number = 1
    for key, value in matrix.items():
        number *= len(value) if isinstance(value, list) else 1
        if number == 0:
            raise places.error(name, (MATRIX, key), f"'{key}' of the matrix has no values", "give one or more")
        if number > MOST_COMBINATIONS:
            raise places.error(name, (MATRIX,), f"the matrix makes more than {MOST_COMBINATIONS} entries", "split it")
    return combinations(matrix)


def _made(
    outer: str, job: dict[str, object], values: dict[str, object], places: Places
) -> tuple[str, dict[str, object]]:
    """The name and the entry that `job` makes of one combination."""
    pattern = job.get("name")
    if not isinstance(pattern, str):
        raise places.error(
            outer, (JOB,), f"the job of '{outer}' has no name", "name it with the values: name: 'net-{batch}'", key=True
        )
    name = fill(pattern, values)
    left = next((m["key"] for m in _PLACEHOLDER.finditer(name) if m["key"]), None)
    if left is not None:
        remedy = did_you_mean(left, [str(k) for k in values]) or f"it has {', '.join(map(str, values))}"
        raise places.error(outer, (JOB, "name"), f"the matrix has no key '{left}'", remedy)
    if not name.strip() or not name.isprintable():
        raise places.error(outer, (JOB, "name"), f"{name!r} cannot be the name of an entry", "write a word")
    made = {key: value for key, value in job.items() if key != "name"} | {MATRIX: values}
    for path in _FILLED:
        made = _filled_at(made, path, values)
    return name, made


def _filled_at(entry: dict[str, object], path: tuple[str, ...], values: dict[str, object]) -> dict[str, object]:
    inner = entry.get(path[0])
    if len(path) > 1:
        return entry | {path[0]: _filled_at(inner, path[1:], values)} if isinstance(inner, dict) else entry
    if isinstance(inner, dict):
        return entry | {path[0]: {key: _filled(value, values) for key, value in inner.items()}}
    return entry | {path[0]: _filled(inner, values)} if isinstance(inner, list) else entry


def _filled(value: object, values: dict[str, object]) -> object:
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    return fill(value, values) if isinstance(value, str) else value


def _add(expanded: dict[str, object], name: str, entry: Any, written: str, places: Places) -> None:
    if name in expanded:
        path = (JOB, "name") if MATRIX in entry else ()
        raise places.error(
            written,
            path,
            f"there are two entries '{name}'",
            "put every key of the matrix into the job's name",
            key=not path,
        )
    expanded[name] = entry

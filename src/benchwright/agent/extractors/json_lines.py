"""Lines that are JSON objects, or end with one."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from benchwright.agent.extractors.base import Block, Hits
from benchwright.core.errors import InvalidInput

_STARTS_TRIED = 4  # text before the object may hold a `{` too
_MISSING = object()


class JsonLinesExtractor:
    """The number under a key: `loss`, `train.loss` (inside an object, or a key with a dot), `losses.0` (inside a list)."""

    def __init__(self, key: str) -> None:
        if not key.strip():
            raise InvalidInput("the key is empty", remedy="name the key to read, such as loss or train.loss")
        self._path = key.strip().split(".")
        self._needed = _needed_text(self._path)
        self.fragments: tuple[str, ...] = tuple(part for part in self._path if not part.isdigit())

    def scan(self, block: Block) -> Hits:
        hits = Hits()
        needed = b"{" if block.has_escapes else self._needed
        position = block.raw.find(needed)
        while position >= 0:
            start, end = block.line_bounds(position)
            if start not in block.decoded:
                line = block.line(start, end)
                block.decoded[start] = [_decode(part) for part in line.text.split("\n")]
            for decoded in block.decoded[start]:
                value = _reach(decoded, self._path)
                if value is not _MISSING:
                    _add(hits, value, block.line_at(start))
            position = block.raw.find(needed, end)
        return hits


def _needed_text(path: Sequence[str]) -> bytes:
    """Text that is in every line with this key, so that other lines need not be decoded."""
    names = [part for part in path if not part.isdigit()]
    if not names or not names[-1].isascii() or json.dumps(names[-1]) != f'"{names[-1]}"':
        return b"{"
    if path[-1] != names[-1]:
        return names[-1].encode()  # `losses.0` may be a key by itself
    return (f'"{names[-1]}"' if len(path) == 1 else f'{names[-1]}"').encode()


def _decode(line: str) -> object:
    """The object at the end of a line, or None."""
    end = line.rfind("}") + 1
    start = line.find("{")
    for _ in range(_STARTS_TRIED):
        if not 0 <= start < end:
            return None
        try:
            return msgspec.json.decode(line[start:end])
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            found = _decode_not_finite(line[start:end])
        if found is not None:
            return found
        start = line.find("{", start + 1)
    return None


def _decode_not_finite(text: str) -> object:
    """Python writes a loss that diverged as NaN or Infinity, which is not JSON."""
    if "NaN" not in text and "Infinity" not in text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _reach(value: object, path: Sequence[str]) -> object:
    """The value at the end of the path; a key that contains dots goes before a key inside an object."""
    if not path:
        return value
    if isinstance(value, list):
        index = int(path[0]) if path[0].isdecimal() and len(path[0]) < 10 else len(value)
        return _reach(value[index], path[1:]) if index < len(value) else _MISSING
    if not isinstance(value, dict):
        return _MISSING
    for parts in range(len(path), 0, -1):
        key = ".".join(path[:parts])
        if key in value:
            found = _reach(value[key], path[parts:])
            if found is not _MISSING:
                return found
    return _MISSING


def _add(hits: Hits, value: object, line: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        hits.reject(
            json.dumps(value)[:1000] if value is None or isinstance(value, bool) else type(value).__name__, line
        )
    elif isinstance(value, str):
        hits.add(value, line)
    else:
        hits.values.append(_as_float(value))
        hits.lines.append(line)


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond any float
        return float("inf") if value > 0 else float("-inf")

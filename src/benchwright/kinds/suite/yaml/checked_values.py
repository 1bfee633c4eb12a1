"""Values of a YAML file with the type they must have; whatever is wrong is shown at its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.numbers.quantities import parse_size
from benchwright.kinds.suite.yaml.nodes import Path, YamlFile

_LARGEST = 1 << 62
_FREE = ("x-", "_")  # keys that begin so are the user's own
ALL = "all"  # the whole of the device, however much that is
_OCTETS = re.compile(r"(?<=[0-9 kKMGT])(i?)o$")  # French: Go is GB, Gio is GiB


def shown(value: object) -> str:
    """As text; Python refuses to write very long numbers, which a file may hold."""
    try:
        return str(value)
    except ValueError:
        return "a number without end"


def parse_capacity(value: object) -> int | None:
    """Bytes; None for `All`. InvalidInput, without a place, if it is no amount of memory."""
    text = shown(value).strip()
    if text.lower() == ALL:
        return None
    try:
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return parse_size(_OCTETS.sub(r"\1B", text).replace("k", "K"))
    except (InvalidInput, OverflowError):
        pass
    raise InvalidInput(f"'{text}' is not an amount of memory", remedy="write 80GiB or 81920 MiB, or All")


class CheckedValues:
    """Looks into `file`; a path is the way from its root. `read_text` turns a text as written into what it means."""

    def __init__(self, file: YamlFile, read_text: Callable[[str, Path], str] | None = None) -> None:
        self.file = file
        self._read_text = read_text or (lambda text, path: text)

    def get(self, path: Path) -> object:
        """What is written there; None if nothing is."""
        value = self.file.value
        for key in path:
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def mapping(self, path: Path, what: str, known: Iterable[str] | None = None) -> dict[Any, Any]:
        """A map; empty if nothing is there. `known`: the keys it may have."""
        value = self.get(path)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.file.error(f"{what} is not a map", path, "write one `key: value` on each line")
        if known is not None:
            self._check_keys(value, path, what, list(known))
        return value

    def _check_keys(self, value: dict[object, object], path: Path, what: str, known: list[str]) -> None:
        for key in value:
            if key not in known and not shown(key).startswith(_FREE):
                remedy = did_you_mean(shown(key), known) or f"use {', '.join(known)}"
                raise self.file.error(f"'{shown(key)}' is not a key of {what}", (*path, key), remedy, key=True)

    def items(self, path: Path, what: str) -> list[object]:
        value = self.get(path)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.file.error(f"{what} is not a list", path, "write one `- …` on each line")
        return value

    def text(self, path: Path, what: str) -> str | None:
        """A text, or a number as text; None if nothing is there."""
        value = self.get(path)
        if value is None:
            return None
        if isinstance(value, (dict, list, bool)):
            raise self.file.error(f"{what} is not text", path)
        return self._read_text(shown(value), path)

    def needed_text(self, path: Path, what: str, remedy: str) -> str:
        value = self.text(path, what)
        if not value:
            raise self.file.error(f"{what} is missing", path, remedy)
        return value

    def whole(self, path: Path, what: str, *, least: int = 0, most: int | None = None) -> int | None:
        value = self.get(path)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= (most or _LARGEST):
            span = f"of {least} or more" if most is None else f"from {least} to {most}"
            raise self.file.error(f"{what} is '{shown(value)}', not a whole number {span}", path)
        return value

    def number(self, path: Path, what: str) -> float | None:
        value = self.get(path)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise self.file.error(f"{what} is '{shown(value)}', not a number", path)
        return float(value)

    def flag(self, path: Path, what: str) -> bool:
        value = self.get(path)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.file.error(f"{what} is '{shown(value)}', neither true nor false", path)
        return value

    def at(self, path: Path, error: InvalidInput) -> InvalidInput:
        """`error`, which has no place, at `path`."""
        return self.file.error(error.what, path, error.remedy)

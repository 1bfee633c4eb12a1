"""`${key}` in an entry: replaced by what the entry itself says there. What belongs to the system stays for the plan.

`${num_machines}` is a key of the entry, `${voir.options.stop}` one below; `${.x}` stands beside the value, `${..x}` one level up.
A value that is nothing else keeps its type. `${dirs.data}` becomes the placeholder for that folder. `${{x}}` is the text `${x}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from benchwright.core.errors import did_you_mean

LONGEST = 100_000  # characters of a text with everything put in
MOST_STEPS = 20_000
DEEPEST = 100
_REFERENCE = re.compile(r"\\\$\{([^${}]*)\}|\$\{([^${}]*)\}")  # a backslash in front: as it is
_INDEX = re.compile(r"\[(\w+)\]")
_SYSTEM, _DIRS = "system", "dirs"  # known when the machine is
_FOLDERS = ("base", "venv", "data", "runs", "extra", "cache")
_PLAIN = "write ${{name}} for the literal text"

Path = tuple[Any, ...]
Fail = Callable[[Path, str, str], Exception]  # where in the entry, what, what to do


def interpolate(entry: dict[str, object], fail: Fail) -> dict[str, object]:
    """`entry` with its `${…}` references filled in; raises what `fail` makes of one that leads nowhere."""
    filled: dict[str, object] = _Filler(entry, fail).fill(entry, ())
    return filled


class _Filler:
    def __init__(self, entry: dict[str, object], fail: Fail) -> None:
        self.entry = entry
        self.fail = fail
        self.steps = self.depth = 0
        self.inside: list[Path] = []

    def fill(self, value: object, path: Path) -> Any:
        """`value`, which stands at `path`, filled."""
        if isinstance(value, str):
            return self._text(value, path) if "${" in value else value
        if not isinstance(value, dict | list):
            return value
        self.steps += 1
        self.depth += 1
        if self.steps > MOST_STEPS or self.depth > DEEPEST:
            raise self._failed(path, "this grows too large when references are filled in", "use fewer references")
        filled: Any
        if isinstance(value, dict):
            filled = {key: self.fill(item, (*path, key)) for key, item in value.items()}
        else:
            filled = [self.fill(item, (*path, index)) for index, item in enumerate(value)]
        self.depth -= 1
        return filled

    def _text(self, text: str, path: Path) -> object:
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and whole[2] is not None:
            return self._value(whole[2], path)
        filled = _REFERENCE.sub(
            lambda match: f"${{{{{match[1]}}}}}" if match[2] is None else str(self._value(match[2], path)), text
        )
        self.steps += len(filled) // 100
        if len(filled) > LONGEST:
            raise self._failed(path, "this grows too long when references are filled in", "use fewer references")
        return filled

    def _value(self, reference: str, path: Path) -> object:
        """The value of a reference at `path`; unchanged if only the planner can know it."""
        written, target = f"${{{reference}}}", self._target(reference, path)
        if target is None:
            raise self._failed(path, f"{written} is not a key of the entry", _PLAIN)
        if target[0] == _SYSTEM and _SYSTEM not in self.entry:
            return written
        if target[0] == _DIRS and len(target) == 2 and target[1] in _FOLDERS and _DIRS not in self.entry:
            return f"{{milabench_{target[1]}}}"
        if target in self.inside or len(self.inside) > DEEPEST // 4:
            raise self._failed(path, f"{written} refers to itself", "write one of the values out")
        found: object = self.entry
        for key in target:
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and re.fullmatch(r"[0-9]{1,6}", str(key)) and int(key) < len(found):
                found = found[int(key)]
            else:
                near = did_you_mean(str(key), map(str, found)) if isinstance(found, dict) else None
                remedy = near or _PLAIN
                raise self._failed(path, f"the entry has no '{'.'.join(map(str, target))}' for {written}", remedy)
        self.inside.append(target)
        value = self.fill(found, target)
        self.inside.pop()
        return value

    def _target(self, reference: str, path: Path) -> Path | None:
        """The path from the entry's root; None if there is none."""
        name = reference.strip()
        dots = len(name) - len(name.lstrip("."))
        keys = tuple(_INDEX.sub(r".\1", name[dots:]).split("."))
        if dots > len(path) or not all(keys) or ":" in name:
            return None
        return (*path[: len(path) - dots], *keys) if dots else keys

    def _failed(self, path: Path, what: str, remedy: str) -> Exception:
        return self.fail(path, what, remedy)

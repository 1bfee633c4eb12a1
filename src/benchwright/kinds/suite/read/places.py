"""Finds the place in a suite that a value came from; only when an error needs it."""

from __future__ import annotations

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.read.keys import EVERY, JOB
from benchwright.kinds.suite.read.layers import Layer
from benchwright.kinds.suite.read.overrides import Override
from benchwright.kinds.yaml.values import YamlFile

_LONGEST = 200  # places to look at; circles are found elsewhere


class Places(msgspec.Struct, frozen=True):
    """Layers, lowest first; `parents`: entry → what it inherits; `made`: entry → the entry whose matrix made it."""

    layers: tuple[Layer, ...]
    overrides: tuple[Override, ...] = ()
    parents: dict[str, str] = {}
    made: dict[str, str] = {}

    def error(
        self, name: str, path: tuple[object, ...], what: str, remedy: str | None = None, *, key: bool = False
    ) -> InvalidInput:
        """An InvalidInput that points at the source of `path` in the entry `name`, or at the entry."""
        for length in range(len(path), 0, -1):
            for source, at in self._candidates(name, path[:length]):
                if isinstance(source, Override):
                    if source.path[: len(at)] == at:
                        return source.error(what, remedy)
                elif source.holds(at):
                    return source.error(what, at, remedy, key=key)
        file, at = self.entry(name)
        return file.error(what, at, remedy, key=True)

    def folder(self, name: str) -> str:
        """The folder of the last file that mentions the entry."""
        file = self.entry(name)[0]
        return next(layer.folder for layer in self.layers if layer.file is file)

    def entry(self, name: str) -> tuple[YamlFile, tuple[object, ...]]:
        """The last file that mentions the entry, and the path in it."""
        written = self.made.get(name, name)
        for layer in reversed(self.layers):
            if written in layer.entries:
                return layer.file, (written,)
        return self.layers[-1].file, ()

    def _candidates(self, name: str, path: tuple[object, ...]) -> list[tuple[YamlFile | Override, tuple[object, ...]]]:
        """Possible sources of `path` in `name`, strongest first: `*`, the entry, what it inherits."""
        ways: list[tuple[object, ...]] = [(EVERY, *path)]
        current: str | None = name
        while current is not None and len(ways) < _LONGEST:
            ways.append((current, *path))
            if current in self.made:
                ways.append((self.made[current], JOB, *path))
            current = self.parents.get(current)
        sources: list[YamlFile | Override] = [*reversed(self.overrides)]
        sources += [layer.file for layer in reversed(self.layers)]
        return [(source, way) for way in ways for source in sources]

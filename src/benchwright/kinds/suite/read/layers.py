"""A suite file and its includes as layers; later ones override earlier ones."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.read.keys import INCLUDE, entry_problem, respelt
from benchwright.kinds.yaml.merge import DELETE
from benchwright.kinds.yaml.value_types import shown
from benchwright.kinds.yaml.values import YamlFile, read_yaml

MOST_LAYERS = 1000
KIND = "suite file"


class Layer(msgspec.Struct, frozen=True):
    """One file and its checked entries, each with the folder and file it comes from. An entry may be DELETE."""

    file: YamlFile
    folder: str
    entries: dict[str, Any]
    warnings: tuple[tuple[str, str], ...] = ()  # of which entry, and what


def read_layers(path: str) -> list[Layer]:
    """The layers of the file at `path`, lowest first. A file included twice appears twice."""
    if "\0" in path:
        raise InvalidInput("this is not a path", where=path, remedy=f"name a {KIND}")
    return _Reader().layers(path)


def check_layer(file: YamlFile, entries: dict[Any, Any]) -> None:
    """InvalidInput at the first invalid thing in `entries`."""
    for name, entry in entries.items():
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise file.error(
                f"{shown(name)} cannot be the name of an entry", (name,), "write a word, quoted if necessary", key=True
            )
        if entry is DELETE:
            continue
        if not isinstance(entry, dict):
            raise file.error(
                f"'{name}' is {'empty' if entry is None else shown(entry)}, not an entry",
                (name,),
                _no_entry_remedy(name, entry),
                key=True,
            )
        problem = entry_problem(entry)
        if problem is not None:
            raise file.error(problem.what, (name, *problem.path), problem.remedy, key=problem.at_key)


def top_level(file: YamlFile) -> dict[Any, Any]:
    """The file's top-level map; InvalidInput if it is something else."""
    if file.value is None:
        raise file.error("the file has no entries", (), "an entry has a name, a definition and a plan")
    if not isinstance(file.value, dict):
        raise file.error(
            f"a suite is a map of entries, this is {shown(file.value)}", (), "write 'name:' above its keys"
        )
    return file.value


class _Reader:
    def __init__(self) -> None:
        self.read: dict[str, tuple[Layer, list[str]]] = {}  # real path → the layer and what it includes
        self.found: list[Layer] = []

    def layers(self, path: str) -> list[Layer]:
        self._add(path, os.path.abspath(path), ())
        return self.found

    def _add(self, path: str, place: str, chain: tuple[str, ...]) -> None:
        """Appends the layers of `path`; `chain`: the files that include it."""
        real = os.path.realpath(place)
        if real not in self.read:
            self.read[real] = _read_layer(path, place)
        layer, includes = self.read[real]
        for index, include in enumerate(includes):
            where = (INCLUDE,) if isinstance(layer.file.value[INCLUDE], str) else (INCLUDE, index)
            target = os.path.join(os.path.dirname(path), os.path.expanduser(include))
            within = (*chain, real)
            if os.path.realpath(target) in within:
                circle = [*within[within.index(os.path.realpath(target)) :], os.path.realpath(target)]
                names = " → ".join(os.path.basename(p) for p in circle)
                raise layer.file.error(f"the files include each other: {names}", where, "remove one of the includes")
            if len(self.found) >= MOST_LAYERS or len(within) > 100:
                raise layer.file.error(f"more than {MOST_LAYERS} files are included", where, "include each once")
            if not os.path.isfile(target):
                raise layer.file.error(f"there is no file '{include}'", where, f"expected at {target}")
            self._add(target, os.path.realpath(target), within)
        self.found.append(layer)


def _read_layer(path: str, place: str) -> tuple[Layer, list[str]]:
    file = read_yaml(path, kind=KIND, extras=True)
    values = dict(top_level(file))
    includes = _includes(file, values.pop(INCLUDE, None))
    entries: dict[str, object] = {}
    warnings = [(str(remark.path[0]), f"{path}:{remark.line}: {remark.what}") for remark in file.remarks]
    given = {"config_base": os.path.dirname(place), "config_file": place}
    for name, entry in values.items():
        if isinstance(entry, dict):
            entry, changed = respelt(entry | {k: v for k, v in given.items() if entry.get(k) is None})
            for way in changed:
                line = file.place((name, *way), key=True).line
                meant = way[-1].replace("-", "_")
                warnings.append((str(name), f"{path}:{line}: '{way[-1]}' is read as '{meant}'"))
        entries[name] = entry
    check_layer(file, entries)
    return Layer(file, os.path.dirname(place), entries, tuple(warnings)), includes


def _includes(file: YamlFile, value: object) -> list[str]:
    if value is None:
        return []
    included = [value] if isinstance(value, str) else value
    if not isinstance(included, list):
        raise _not_included(file, value, (INCLUDE,))
    for index, name in enumerate(included):
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise _not_included(file, name, (INCLUDE, index))
    return included


def _not_included(file: YamlFile, value: object, path: tuple[object, ...]) -> InvalidInput:
    return file.error(f"include is {shown(value)}, not a file or a list of files", path, "write include: [base.yaml]")


def _no_entry_remedy(name: str, entry: object) -> str:
    if name in ("arch", "sshkey", "nodes", "gpu", "multirun", "system"):
        return "this looks like a system file: give it with --system"
    if name == "version":
        return "this looks like a scaling file"
    if entry is None:
        return "write its keys below it, indented"
    return "an entry is a map: write 'key: value' below its name"

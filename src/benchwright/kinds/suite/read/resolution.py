"""A suite file to resolved entries: layers, overrides, matrices, inheritance, interpolation, in that order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from benchwright.kinds.suite.read.folder import ARCH, has_program, real_folder
from benchwright.kinds.suite.read.inheritance import inherit_all, parents_of
from benchwright.kinds.suite.read.interpolation import interpolate
from benchwright.kinds.suite.read.keys import EVERY, PRIVATE, entry_problem
from benchwright.kinds.suite.read.layers import Layer, read_layers
from benchwright.kinds.suite.read.matrix import expand_matrices
from benchwright.kinds.suite.read.overrides import Override, parse_override, unknown_entry
from benchwright.kinds.suite.read.places import Places
from benchwright.kinds.yaml.merge import APPEND, is_append, merge, merge_layers

DEFAULTS = "_defaults"
_LISTS = ("argv", "tags", "requires_capabilities", "url")  # where {append: […]} without a list below it is a list


class Resolution(msgspec.Struct, frozen=True):
    """`entries`: the public ones, by name, resolved as far as the machine does not matter."""

    entries: dict[str, dict[str, Any]]
    places: Places
    notes: dict[str, tuple[str, ...]]  # entry, public or not → what a reader should know


def resolve_entries(path: str, overrides: Sequence[str] = ()) -> Resolution:
    """Reads the suite at `path` and all it includes; InvalidInput points at what is wrong."""
    layers = read_layers(path)
    notes: dict[str, list[str]] = {}
    seen: set[int] = set()
    merged: dict[str, object] = {DEFAULTS: {"enabled": True}}
    for layer in layers:
        if id(layer) not in seen:
            seen.add(id(layer))
            for name, text in layer.warnings:
                notes.setdefault(name, []).append(text)
        merged = _laid_over(merged, layer, notes)
    overridden = _Overrides(overrides)
    merged = overridden.applied(merged)
    places = Places(tuple(layers), tuple(overridden.taken))
    expanded, made = expand_matrices(merged, places)
    expanded = overridden.applied(expanded)
    overridden.check_all_taken(expanded)
    places = Places(tuple(layers), tuple(overridden.taken), made=made)
    places = msgspec.structs.replace(places, parents=parents_of(expanded, places))
    interpolating = any("${" in layer.file.text for layer in layers) or any("${" in text for text in overrides)
    entries = {
        name: _finished(name, entry, places, interpolating)
        for name, entry in inherit_all(expanded).items()
        if name != EVERY and not name.startswith(PRIVATE)
    }
    return Resolution(entries, places, {name: tuple(texts) for name, texts in notes.items()})


def _laid_over(below: dict[str, object], layer: Layer, notes: dict[str, list[str]]) -> dict[str, object]:
    if not layer.file.deletes:
        merged: dict[str, object] = merge(below, layer.entries)
        return merged

    def unused(path: tuple[object, ...]) -> None:
        line = layer.file.place(path).line
        text = f"{layer.file.path}:{line}: !delete removes nothing: no included file sets it for '{path[0]}'"
        if "argv" in path:
            text += "; null drops an inherited argument"
        known = notes.setdefault(str(path[0]), [])
        if text not in known:
            known.append(text)

    return merge_layers(below, layer.entries, unused)


class _Overrides:
    """Overrides, applied once their entry exists: a matrix makes entries late."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.left = list(texts)
        self.taken: list[Override] = []

    def applied(self, entries: dict[str, object]) -> dict[str, object]:
        left, self.left = self.left, []
        for text in left:
            override = parse_override(text, entries)
            if override is None:
                self.left.append(text)
                continue
            self.taken.append(override)
            entries = merge_layers(entries, override.layer(), lambda path: None)
        return entries

    def check_all_taken(self, entries: dict[str, object]) -> None:
        if self.left:
            raise unknown_entry(self.left[0], list(entries))


def _finished(name: str, entry: dict[str, Any], places: Places, interpolating: bool) -> dict[str, Any]:
    """`entry` with its name, groups and folder, and its references to itself filled in."""
    finished = {"name": name} | entry | {"name": name}
    for key, default in (("group", "${name}"), ("install_group", "${group}"), ("install_variant", ARCH)):
        if finished.get(key) is None:
            finished[key] = default
    for key in _LISTS:
        if is_append(finished.get(key)) and len(finished[key]) == 1:
            finished[key] = finished[key][APPEND]
    if interpolating:
        finished = interpolate(finished, lambda path, what, remedy: places.error(name, path, what, remedy))
        problem = entry_problem(finished)
        if problem is not None:
            raise places.error(name, problem.path, problem.what, problem.remedy, key=problem.at_key)
    else:
        for key, default, other in (("group", "${name}", "name"), ("install_group", "${group}", "group")):
            if finished[key] == default:
                finished[key] = finished[other]
    if has_program(finished) and not finished.get("definition"):
        finished["config_base"] = real_folder(".", str(finished.get("config_base") or places.folder(name)))
    if isinstance(finished.get("definition"), str):
        # A job of a matrix that inherits no folder has that of the matrix.
        base = finished.get("config_base") or places.folder(name)
        finished["definition"] = real_folder(str(base), finished["definition"])
    return finished

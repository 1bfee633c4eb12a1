"""A suite file to resolved entries: layers, overrides, matrices, inheritance, interpolation, in that order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import msgspec

from benchwright.core.errors import did_you_mean
from benchwright.kinds.suite.read.folder import ARCH, has_program, real_folder
from benchwright.kinds.suite.read.inheritance import inherit_all, parents_of
from benchwright.kinds.suite.read.keys import EVERY, JOB, PRIVATE, entry_problem
from benchwright.kinds.suite.read.layers import Layer, read_layers
from benchwright.kinds.suite.read.overrides import Override, parse_override, unknown_entry
from benchwright.kinds.suite.read.places import Places
from benchwright.kinds.yaml.merge import APPEND, is_append, merge, merge_layers

# `${key}` in an entry: replaced by what the entry itself says there. What belongs to the system stays for the plan.
#
# `${num_machines}` is a key of the entry, `${pip.args}` one below; `${.x}` stands beside the value, `${..x}` one level up.
# A value that is nothing else keeps its type. `${dirs.data}` becomes the placeholder for that folder. `${{x}}` is the text `${x}`.


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
            return f"{{benchwright_{target[1]}}}"
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


# An entry with a `matrix`: replaced by one entry for each combination of its values, made from its `job`.


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
    for values in product(*reversed(choices)):  # the last key's loop is the outermost
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

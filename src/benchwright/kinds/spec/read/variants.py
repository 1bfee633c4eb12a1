"""One test with several shapes, or lists of files, is several tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from benchwright.core.inputs.specification import SpecInput
from benchwright.kinds.spec.read.keys import VARIABLE
from benchwright.kinds.text_file import Path
from benchwright.kinds.yaml.value_types import PlacedValues

_LISTS = ("input_files", "output_files", "golden_files")


class Variant(msgspec.Struct, frozen=True):
    """One of the tests that a test stands for: a shape of each input, and one of each list of files."""

    inputs: tuple[SpecInput, ...]
    files: Mapping[str, Mapping[str, Any]]  # input_files, output_files, golden_files


def by_name(tensors: Any) -> dict[str, Any]:
    """Inputs or outputs of a model: a map, or, as in 2018, a list of maps."""
    several = tensors if isinstance(tensors, list) else [tensors or {}]
    return {name: entry for each in several for name, entry in (each or {}).items()}


def variants_of(file: PlacedValues, test: Mapping[str, Any], model: Mapping[str, Any], path: Path) -> list[Variant]:
    """In order. Every list has one item, or as many as the longest."""
    inputs = test.get("inputs") or {}
    shapes = {name: _shapes(file, entry, (*path, "inputs", name)) for name, entry in inputs.items()}
    lists: dict[Path, int] = {(*path, "inputs", name, "shapes"): len(found) for name, found in shapes.items() if found}
    for key in _LISTS:
        for name, entry in (test.get(key) or {}).items():
            if isinstance(entry, list):
                if not entry:
                    raise file.error(f"{name} has no file", (*path, key, name), "name one, or leave it out")
                lists[*path, key, name] = len(entry)
    count = max(lists.values(), default=1)
    for place, length in lists.items():
        if length not in (1, count):
            raise file.error(f"{length} items, where another input has {count}", place, "give as many to each, or one")
    _check_ranks(file, shapes, by_name(model.get("inputs")), path)
    return [_variant(test, inputs, shapes, number) for number in range(count)]


def _variant(test: Mapping[str, Any], inputs: Mapping[str, Any], shapes: Mapping[str, Any], number: int) -> Variant:
    made = []
    for name, entry in inputs.items():
        found = shapes[name]
        if found:
            type_ = _of(entry.get("type") or "float", number)
            made.append(SpecInput(name=name, shape=found[min(number, len(found) - 1)], type=str(type_)))
    files = {key: {name: _of(each, number) for name, each in (test.get(key) or {}).items()} for key in _LISTS}
    return Variant(tuple(made), files)


def _of(value: Any, number: int) -> Any:
    return value[min(number, len(value) - 1)] if isinstance(value, list) and value else value


def _shapes(file: PlacedValues, entry: Any, path: Path) -> list[tuple[int, ...]]:
    """Of one input; a single shape may be written without the outer list. None: a file gives the input."""
    written = (entry or {}).get("shapes")
    if written is None:
        return []
    if not written:
        raise file.error("shapes is empty", (*path, "shapes"), "write [[1, 3, 224, 224]]")
    several = written if isinstance(written[0], list) else [written]
    made = []
    for number, shape in enumerate(several):
        place = (*path, "shapes", number) if isinstance(written[0], list) else (*path, "shapes")
        if not isinstance(shape, list):
            raise file.error("this is not a shape", place, "write [1, 3, 224, 224]")
        made.append(tuple(_dimension(file, size, (*place, at)) for at, size in enumerate(shape)))
    return made


def _dimension(file: PlacedValues, size: Any, path: Path) -> int:
    if size == VARIABLE:
        return -1
    try:
        return int(size)
    except ValueError:  # a placeholder
        raise file.error(f"'{size}' is not a dimension", path, "write a whole number") from None


def _check_ranks(file: PlacedValues, shapes: Mapping[str, Any], of_model: Mapping[str, Any], path: Path) -> None:
    """The model may say what its inputs are like, as the files of 2018 do."""
    for name, found in shapes.items():
        known = [shape for shape in _shapes(file, of_model.get(name), ("model", "inputs", name)) if shape]
        for number, shape in enumerate(found):
            if known and len(shape) != len(known[0]):
                what = f"{name} has {len(shape)} dimensions here, but {len(known[0])} in the model"
                raise file.error(what, (*path, "inputs", name, "shapes", number), "give as many")

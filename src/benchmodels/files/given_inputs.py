"""Inputs of a model file as a specification gives them: types, and files that hold the values."""

from __future__ import annotations

from importlib import import_module
from typing import Dict, List, Mapping, Sequence, Tuple

from benchmodels.check.array_files import ReadArray, UnreadableArray, read_array
from benchmodels.files.model_file import FileInput, resolved_shapes, trouble
from benchmodels.types import Array, Details

# Names that specifications use, beside numpy's own.
_ANY_FLOAT = "float"  # of whatever width
_NAMES = {"double": "float64", "half": "float16", "int": "int32", "long": "int64"}


def check_types(inputs: Sequence[FileInput], types: Mapping[str, str]) -> None:
    """Unsupported if the file's inputs have other types than `types` says."""
    for each in inputs:
        written = types.get(each.name, each.dtype).lower()
        wanted = _NAMES.get(written, written.replace("_t", ""))
        if each.dtype != wanted and not (written == _ANY_FLOAT and "float" in each.dtype):
            raise trouble(f"input {each} is not of the type {written}, as asked for")


def shapes_and_arrays(
    inputs: Sequence[FileInput], shapes: Mapping[str, Sequence[int]], files: Mapping[str, str]
) -> Tuple[Dict[str, Tuple[int, ...]], Details]:
    """The shape of every input, and arrays for the inputs given as files. A file of plain numbers takes the given shape."""
    known = {name: list(shape) for name, shape in shapes.items()}
    own = {each.name: each for each in inputs}
    arrays: Dict[str, ReadArray] = {}
    for name, path in files.items():
        if name not in own:
            raise trouble(f"no input '{name}' for {path}; the inputs are {', '.join(map(str, inputs))}")
        try:
            arrays[name] = read_array(path, name)
        except UnreadableArray as error:
            raise trouble(f"{path}: {error}") from None
        if arrays[name].shaped:
            known.setdefault(name, list(arrays[name].values.shape))
    resolved = resolved_shapes(inputs, known)
    return resolved, {name: _fitted(own[name], resolved[name], each, files[name]) for name, each in arrays.items()}


def _fitted(each: FileInput, shape: Tuple[int, ...], found: ReadArray, path: str) -> Array:
    np = import_module("numpy")
    values = np.asarray(found.values)
    sizes: List[int] = list(values.shape)
    if values.size != int(np.prod(shape)) or (found.shaped and tuple(sizes) != shape):
        raise trouble(f"{path} has {'×'.join(map(str, sizes))} numbers; input {each} needs {'×'.join(map(str, shape))}")
    return values.reshape(shape).astype(each.dtype)

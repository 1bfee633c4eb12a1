"""Model files as what is measured: `model.onnx`, `.pt2` of torch.export, OpenVINO's `.xml`.

There is no script that calls them, so their inputs are made here, from their shapes.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from importlib import import_module
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

from benchprobe.models.measure import SUFFIXES
from benchprobe.models.reference import Reference
from benchprobe.models.work import Work
from benchprobe.runtimes.base import Unsupported

# An entry "location" in an ONNX file names a file of weights: its length in one byte, and the name.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])([^\x00]{1,127})", re.DOTALL)
Dimension = Union[int, str]  # a name: the size is free


class FileInput(NamedTuple):
    """`dtype` as numpy calls it. `below`: whole numbers must be less, since they are looked up in a table of that size."""

    name: str
    shape: Sequence[Dimension]
    dtype: str
    below: Optional[int] = None

    def __str__(self) -> str:
        return f"{self.name} ({'×'.join(map(str, self.shape)) or 'scalar'} {self.dtype})"


class Size(NamedTuple):
    """Of the weights; None: not known."""

    parameters: Optional[int] = None
    bytes_: Optional[int] = None


class ModelFile(Protocol):
    """An opened model file. Methods raise Unsupported, or what their library raises."""

    inputs: List[FileInput]
    title: str  # as the `class` of a model

    def size(self) -> Size:
        """Of its weights."""

    def work(self, arrays: Mapping[str, Any]) -> Work:
        """Of one call with those inputs."""

    def reference(self, arrays: Mapping[str, Any]) -> Reference:
        """The outputs that runtimes are held against."""


def open_model_file(path: str) -> ModelFile:
    """Unsupported if it cannot be read."""
    suffix = os.path.splitext(path)[1].lower()
    if not os.path.isfile(path):
        raise Unsupported("load", f"{path}: there is no such file", kind="not_found")
    if suffix == ".onnx":
        from benchprobe.models.onnx_file import OnnxFile

        return OnnxFile(path)
    if suffix == ".pt2":
        from benchprobe.models.exported_file import ExportedFile

        return ExportedFile(path)
    if suffix == ".xml":
        from benchprobe.models.openvino_file import OpenvinoFile

        return OpenvinoFile(path)
    raise Unsupported("load", f"{path}: not a model file; known are {', '.join(SUFFIXES)}")


def resolved_shapes(inputs: Sequence[FileInput], given: Mapping[str, Sequence[int]]) -> Dict[str, Tuple[int, ...]]:
    """The shape of each input; Unsupported if one is free and not given, or given and impossible."""
    names = [each.name for each in inputs]
    for name in given:
        if name not in names:
            raise _trouble(f"there is no input '{name}'; its inputs are {', '.join(map(str, inputs))}")
    return {each.name: _resolved(each, given.get(each.name)) for each in inputs}


def _resolved(each: FileInput, given: Optional[Sequence[int]]) -> Tuple[int, ...]:
    if given is None:
        free = [size for size in each.shape if not isinstance(size, int)]
        if free:
            example = "x".join(str(size) if isinstance(size, int) else "1" for size in each.shape)
            raise _trouble(
                f"input {each} has free dimensions ({', '.join(map(str, free))}); give --shape {each.name}={example}"
            )
        return tuple(int(size) for size in each.shape)
    fits = len(given) == len(each.shape) and all(
        isinstance(own, str) or own == wanted for own, wanted in zip(each.shape, given)
    )
    if not fits or any(size < 0 for size in given):
        raise _trouble(f"input {each} cannot have the shape {'×'.join(map(str, given))}")
    return tuple(given)


def made_inputs(inputs: Sequence[FileInput], shapes: Mapping[str, Sequence[int]], seed: int) -> Dict[str, Any]:
    """Arrays of those shapes: floats normally distributed; whole numbers below what they index, else 0 and 1; masks of ones."""
    np: Any = import_module("numpy")
    source = np.random.default_rng(seed)
    return {each.name: _made(np, source, each, shapes[each.name]) for each in inputs}


def _made(np: Any, source: Any, each: FileInput, shape: Sequence[int]) -> Any:
    dtype = np.dtype(each.dtype)
    if dtype.kind in "fc":
        return source.standard_normal(tuple(shape)).astype(dtype)
    if "mask" in each.name.lower():
        return np.ones(tuple(shape), dtype=dtype)
    if each.below is not None:
        return source.integers(0, max(1, min(each.below, np.iinfo(dtype).max)), tuple(shape)).astype(dtype)
    made = source.integers(0, 2, tuple(shape)).astype(dtype)
    if made.ndim:
        made[..., :1] = 1  # no row of zeros only: as a mask it would leave nothing
    else:
        made = np.ones((), dtype=dtype)
    return made


def described(opened: ModelFile, arrays: Mapping[str, Any], identity: str, items: Optional[int]) -> Dict[str, Any]:
    """What a `model` event says of it."""
    size = opened.size()
    inputs = [{"name": n, "shape": list(a.shape), "dtype": str(a.dtype).rpartition(".")[2]} for n, a in arrays.items()]
    return {
        "identity": identity,
        "class": opened.title,
        "parameters": size.parameters,
        "parameter_bytes": size.bytes_,
        "inputs": inputs,
        "items": items,
        "mode": "inference",
    }


def files_of(path: str) -> List[str]:
    """All files that a model file consists of: it, and those in which its weights are."""
    stem, suffix = os.path.splitext(os.path.abspath(path))
    if suffix.lower() == ".xml":
        return [path, *(name for name in [f"{stem}.bin"] if os.path.isfile(name))]
    if suffix.lower() != ".onnx" or not os.path.getsize(path):
        return [path]
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = {found[2][: found[1][0]].decode(errors="replace") for found in _LOCATION.finditer(content)}
    return [path, *(os.path.join(os.path.dirname(stem), name) for name in sorted(names))]


def digest_of(paths: Sequence[str]) -> str:
    """Of the contents of those files, in their order."""
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                found.update(block)
        found.update(b"\0")
    return found.hexdigest()


def _trouble(text: str) -> Unsupported:
    return Unsupported("load", text, kind="error")

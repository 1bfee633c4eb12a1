"""Model files to measure: `.onnx`, `.pt2` of torch.export, OpenVINO's `.xml`, `.tflite`.

No script calls them, so their inputs are generated here, from their shapes.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

from benchmodels.check.reference import Reference
from benchmodels.measure.batch import Batch
from benchmodels.measure.work import CallWork
from benchmodels.runtimes.base import Unsupported
from benchmodels.types import Array, Details

Dimension = Union[int, str]  # a name if the size is free


class FileInput(NamedTuple):
    """`dtype` as numpy names it. `shape` None: even the number of dimensions is unknown. `below`: integers must be less,
    since they index a table of that size."""

    name: str
    shape: Optional[Sequence[Dimension]]
    dtype: str
    below: Optional[int] = None

    def __str__(self) -> str:
        shape = "any shape" if self.shape is None else "×".join(map(str, self.shape)) or "scalar"
        return f"{self.name} ({shape} {self.dtype})"


class Size(NamedTuple):
    """Of the weights; None if unknown."""

    parameters: Optional[int] = None
    bytes_: Optional[int] = None


class ModelFile(Protocol):
    """An opened model file. Methods raise Unsupported, or what their library raises."""

    inputs: List[FileInput]
    title: str  # as the `class` of a model

    def size(self) -> Size:
        """Of its weights."""

    def work(self, arrays: Mapping[str, Array]) -> CallWork:
        """Of one call with these inputs."""

    def reference(self, arrays: Mapping[str, Array]) -> Reference:
        """Outputs to compare those of runtimes with."""

    def batch(self, arrays: Mapping[str, Array]) -> Optional[Batch]:
        """How many items a call with these inputs has, if the file says so."""


def resolved_shapes(inputs: Sequence[FileInput], given: Mapping[str, Sequence[int]]) -> Dict[str, Tuple[int, ...]]:
    """The shape of each input; raises Unsupported if one is free and not given, or given and impossible."""
    names = [each.name for each in inputs]
    for name in given:
        if name not in names:
            raise trouble(f"no input '{name}'; the inputs are {', '.join(map(str, inputs))}")
    shapes = {each.name: _given(each, given[each.name]) for each in inputs if each.name in given}
    free = [each for each in inputs if each.name not in given and _free(each)]
    if free:
        raise trouble(_asked_for(free, inputs, shapes))
    return {each.name: shapes.get(each.name) or tuple(map(int, each.shape or ())) for each in inputs}


def _free(each: FileInput) -> List[str]:
    return ["shape"] if each.shape is None else [size for size in each.shape if isinstance(size, str)]


def _asked_for(free: Sequence[FileInput], inputs: Sequence[FileInput], given: Mapping[str, Tuple[int, ...]]) -> str:
    """Names everything that is missing, with sizes known from another input's dimension of the same name."""
    known: Dict[Dimension, int] = {}
    for each in inputs:
        known.update(zip(each.shape or (), given.get(each.name, ())))
    parts = [f"input {each} has free dimensions ({', '.join(_free(each))})" for each in free]
    options = [f"--shape {each.name}={_example(each, known)}" for each in free]
    return f"{', '.join(parts)}; give {' '.join(options)}"


def _example(each: FileInput, known: Mapping[Dimension, int]) -> str:
    if each.shape is None:
        return "1x1"
    return "x".join(str(known.get(size, 1) if isinstance(size, str) else size) for size in each.shape)


def _given(each: FileInput, given: Sequence[int]) -> Tuple[int, ...]:
    own = given if each.shape is None else each.shape
    fits = len(own) == len(given) and all(isinstance(size, str) or size == wanted for size, wanted in zip(own, given))
    if not fits or any(size < 0 for size in given):
        raise trouble(f"input {each} cannot have the shape {'×'.join(map(str, given))}")
    return tuple(given)


def named_batch(inputs: Sequence[FileInput], arrays: Mapping[str, Array]) -> Optional[Batch]:
    """From a free dimension whose name says it is the batch."""
    for each in inputs:
        for place, name in enumerate(each.shape or ()):
            if isinstance(name, str) and ("batch" in name.lower() or name.lower() == "bs"):
                return Batch(int(arrays[each.name].shape[place]), f"dimension '{name}' of {each.name} in the file")
    return None


def made_inputs(inputs: Sequence[FileInput], shapes: Mapping[str, Sequence[int]], seed: int) -> Details:
    """Random arrays of these shapes: normally distributed floats; integers within the table they index, else 0 or 1; masks of ones."""
    np = import_module("numpy")
    source = np.random.default_rng(seed)
    return {each.name: _made(np, source, each, shapes[each.name]) for each in inputs}


def _made(np: ModuleType, source: Any, each: FileInput, shape: Sequence[int]) -> Any:
    try:
        dtype = np.dtype(each.dtype)
    except TypeError:  # bfloat16, which the runtime converts
        dtype = np.dtype("float32")
    if "float" in each.dtype or dtype.kind == "c":
        return source.standard_normal(tuple(shape)).astype(dtype)
    if "mask" in each.name.lower():
        return np.ones(tuple(shape), dtype=dtype)
    if each.below is not None:
        return source.integers(0, max(1, min(each.below, np.iinfo(dtype).max)), tuple(shape)).astype(dtype)
    made = source.integers(0, 2, tuple(shape)).astype(dtype)
    if made.ndim:
        made[..., :1] = 1  # as a mask, a row of zeros would leave nothing
    else:
        made = np.ones((), dtype=dtype)
    return made


def described(opened: ModelFile, arrays: Mapping[str, Array], identity: str) -> Details:
    """Keys of a `model` event."""
    size = opened.size()
    inputs = [
        {"name": each.name, "shape": list(arrays[each.name].shape), "dtype": each.dtype} for each in opened.inputs
    ]
    known = {"parameters": size.parameters, "parameter_bytes": size.bytes_}
    return {
        "identity": identity,
        "class": opened.title,
        **{name: value for name, value in known.items() if value is not None},
        "inputs": inputs,
        "mode": "inference",
    }


def trouble(text: str) -> Unsupported:
    """A problem with a model file, or with an option for it."""
    return Unsupported("load", text, kind="error")

"""`artifact.json`, which a build writes beside the model: names of inputs and outputs, in order."""

from __future__ import annotations

import json
import os
from importlib import import_module
from types import ModuleType
from typing import List, Mapping, NamedTuple, Optional, Sequence

from benchmodels.runtimes.base import FP32, ArtifactFolder, Unsupported
from benchmodels.types import Array, Arrays, Tensor

FILE = "artifact.json"
FORMAT = 1


class ArtifactInput(NamedTuple):
    """`name`: as the arrays have it; `port`: as the model in the file calls it; `dtype` as torch calls it."""

    name: str
    port: str
    dtype: str


class BuiltModel(NamedTuple):
    """`model`: a path, relative to its folder unless it is a file of the user. Without `inputs` and `outputs`, the model's own
    names apply."""

    model: str
    precision: str = FP32
    inputs: Sequence[ArtifactInput] = ()
    outputs: Sequence[str] = ()
    threads: Optional[int] = None  # None: any number

    @property
    def folder(self) -> str:
        """Where the model lies."""
        return os.path.dirname(self.model)


def write_artifact(folder: str, artifact: BuiltModel) -> None:
    described = {
        "format": FORMAT,
        "model": artifact.model,
        "precision": artifact.precision,
        "inputs": [each._asdict() for each in artifact.inputs],
        "outputs": list(artifact.outputs),
        "threads": artifact.threads,
    }
    with open(os.path.join(folder, FILE), "w", encoding="utf-8") as file:
        json.dump(described, file, indent=1)


def read_artifact(what: ArtifactFolder) -> BuiltModel:
    """With the absolute path of the model, which may be a file of the user."""
    if not what.folder:
        return BuiltModel(os.path.abspath(what.file))
    path = os.path.join(what.folder, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            raw = json.load(file)
        if raw["format"] != FORMAT:
            raise ValueError(f"format {raw['format']}, not {FORMAT}")
        inputs = [ArtifactInput(**each) for each in raw["inputs"]]
        model = os.path.join(os.path.abspath(what.folder), raw["model"])
        return BuiltModel(model, raw["precision"], inputs, raw["outputs"], raw["threads"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unsupported("load", f"{path}: {type(error).__name__}: {error}", kind="error") from error


def torch_dtype(tensor: Tensor) -> str:
    """`float32`, as numpy calls it, too."""
    return str(tensor.dtype).partition(".")[2]


def in_order(arrays: Mapping[str, Array], ports: Sequence[str], artifact: BuiltModel) -> List[Array]:
    """The array for each of the model's ports."""
    name_of = {each.port: each.name for each in artifact.inputs}
    missing = [port for port in ports if name_of.get(port, port) not in arrays]
    if missing:
        raise Unsupported("first_run", f"no array for {', '.join(missing)}; got {', '.join(arrays)}", kind="error")
    return [arrays[name_of.get(port, port)] for port in ports]


def by_name(values: Sequence[Array], own_names: Sequence[str], artifact: BuiltModel) -> Arrays:
    """Outputs under the names of the reference."""
    names = artifact.outputs or own_names
    if len(names) != len(values):
        raise Unsupported("first_run", f"returned {len(values)} outputs, not {len(names)}", kind="error")
    return dict(zip(names, values))


def as_type(array: Array, dtype: str) -> Array:
    """The array in a numpy type, contiguous; "bfloat16": as its bits."""
    numpy = import_module("numpy")
    if dtype == "bfloat16":
        return _bfloat16_bits(numpy, array)
    return numpy.array(array, dtype=dtype, order="C")


def _bfloat16_bits(numpy: ModuleType, array: Array) -> Array:
    """Rounded to the nearest, ties to even, as in torch."""
    single = numpy.array(array, dtype=numpy.float32, order="C")
    bits = single.view(numpy.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return numpy.where(numpy.isnan(single), numpy.uint16(0x7FC0), rounded).astype(numpy.uint16)


def without_bits(array: Array, bits_of: Optional[str]) -> Array:
    """A copy; bfloat16 bits become float32."""
    numpy = import_module("numpy")
    if bits_of == "bfloat16":
        return numpy.asarray(array.view(numpy.uint16).astype(numpy.uint32) << 16, dtype=numpy.uint32).view(
            numpy.float32
        )
    return numpy.array(array)

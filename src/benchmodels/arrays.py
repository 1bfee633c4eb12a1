"""Tensors as numpy arrays, and files of them that can be read without torch."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, Dict, Mapping, Optional, Tuple

from benchmodels.types import Array, Arrays, Details, Tensor, Value

FORMAT = 1


def is_tensor(value: Value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_array(tensor: Tensor) -> Any:
    """A copy of the tensor's values as a numpy array."""
    plain = on_host(tensor)
    try:
        array = plain.numpy()
    except TypeError:
        array = plain.float().numpy()
    return array.copy()


def on_host(tensor: Tensor) -> Any:
    """The tensor on the CPU, dense, with lazy operations resolved."""
    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.dequantize()
    if str(plain.layout) != "torch.strided":
        plain = plain.to_dense()
    return plain.cpu().resolve_conj().resolve_neg()


def save_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Writes tensors and numpy arrays to one file, atomically. No pickle; types that numpy lacks are stored as bits."""
    numpy = importlib.import_module("numpy")
    members: Dict[str, Any] = {}
    described = []
    for index, (name, value) in enumerate(arrays.items()):
        array, bits_of = _as_bits(value) if is_tensor(value) else (numpy.asarray(value), None)
        if array.dtype.hasobject:
            raise ValueError(f"'{name}' holds Python objects")
        if bits_of is not None and array.dtype.itemsize == 1:
            members[f"table.{bits_of}"] = _table(bits_of)
        members[str(index)] = array
        described.append({"name": name, "bits_of": bits_of})
    text = json.dumps({"format": FORMAT, "arrays": described})
    members["description"] = numpy.frombuffer(text.encode(), dtype=numpy.uint8)
    aside = f"{path}.{os.getpid()}.aside"
    try:
        with open(aside, "wb") as file:
            numpy.savez(file, **members)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        if os.path.exists(aside):
            os.unlink(aside)
        raise


def load_arrays(path: str) -> Details:
    """Reads a file of `save_arrays`, in its order; types that numpy lacks become float32, exactly. Needs no torch."""
    numpy = importlib.import_module("numpy")
    with numpy.load(path, allow_pickle=False) as members:
        description = json.loads(bytes(members["description"]))
        if description.get("format") != FORMAT:
            raise ValueError(f"{path}: format {description.get('format')}, not {FORMAT}")
        arrays: Arrays = {}
        for index, described in enumerate(description["arrays"]):
            array = members[str(index)]
            if described["bits_of"] == "bfloat16":
                array = numpy.asarray(array.astype(numpy.uint32) << 16, dtype=numpy.uint32).view(numpy.float32)
            elif described["bits_of"] is not None:
                array = numpy.asarray(members[f"table.{described['bits_of']}"][array])
            arrays[described["name"]] = array
        return arrays


def _as_bits(tensor: Tensor) -> Tuple[Any, Optional[str]]:
    """The values; or their bits and type name, if numpy lacks the type."""
    torch = importlib.import_module("torch")
    plain = on_host(tensor)
    try:
        return plain.contiguous().numpy(), None
    except TypeError:
        pass
    if plain.dtype == torch.bfloat16:
        return plain.contiguous().view(torch.int16).numpy().view("uint16"), "bfloat16"
    if plain.element_size() == 1:
        return plain.contiguous().view(torch.uint8).numpy(), str(plain.dtype).partition(".")[2]
    return plain.float().numpy(), None


def _table(dtype: str) -> Any:
    """The values of the 256 patterns of an 8-bit type."""
    torch = importlib.import_module("torch")
    return torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype)).float().numpy()

"""Arrays in files: text, `.npy`, `.npz`, `.safetensors`. Nothing in a file is executed.

Text holds one number a line, which says nothing about the shape; or, as Caffe2 writes it, a line of sizes and a line of
numbers separated by commas, several of which are stacked.
"""

from __future__ import annotations

import json
import math
import os
from importlib import import_module
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional, Tuple
from zipfile import BadZipFile

np = import_module("numpy")

_MOST_HEADER_BYTES = 100_000_000
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


class ReadArray(NamedTuple):
    """`shaped`: whether the file says what shape it has."""

    values: Any
    shaped: bool = True


class UnreadableArray(ValueError):
    """The problem with a file of arrays, without its path."""


def read_array(path: str, name: str) -> ReadArray:
    """The array of the output `name`: a file of several holds it under that name, or holds only one."""
    suffix = os.path.splitext(path)[1].lower()
    try:
        with open(path, "rb") as file:
            return _read(file, suffix, name)
    except UnreadableArray:
        raise
    except OSError as error:
        raise UnreadableArray(error.strerror or str(error)) from None
    except (ValueError, KeyError, TypeError, EOFError, RecursionError, MemoryError, BadZipFile) as error:
        raise UnreadableArray(f"is no {suffix or 'text'} file of numbers: {str(error)[:200]}") from None


def _read(file: BinaryIO, suffix: str, name: str) -> ReadArray:
    if suffix == ".npy":
        return ReadArray(np.load(file, allow_pickle=False))
    if suffix == ".npz":
        with np.load(file, allow_pickle=False) as members:
            return ReadArray(_chosen({key: members[key] for key in members.files}, name))
    if suffix == ".safetensors":
        return ReadArray(_chosen(_safetensors(file), name))
    return _text(file.read().decode("utf-8").split("\n"))


def _chosen(arrays: Dict[str, Any], name: str) -> Any:
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    raise UnreadableArray(f"has no array '{name}'; it has {', '.join(sorted(arrays)) or 'none'}")


def _text(lines: List[str]) -> ReadArray:
    if any("," in line for line in lines):
        return ReadArray(_caffe2_text(lines))
    numbers = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            numbers.append(_number(line, number))
    if not numbers:
        raise UnreadableArray("holds no number")
    return ReadArray(np.array(numbers, dtype=np.float64), shaped=False)


def _caffe2_text(lines: List[str]) -> Any:
    """Pairs of lines: the sizes, then the numbers. Arrays of several pairs are stacked."""
    filled = [(number, line.strip().strip(",")) for number, line in enumerate(lines, start=1) if line.strip()]
    if len(filled) % 2:
        raise UnreadableArray(f"line {filled[-1][0]}: a line of sizes without its numbers")
    arrays: List[Any] = []
    for (at, sizes), (row, values) in zip(filled[::2], filled[1::2]):
        shape = tuple(_size(size, at) for size in sizes.split(","))
        numbers = [_number(value, row) for value in values.split(",")]
        if math.prod(shape) != len(numbers):
            raise UnreadableArray(f"line {row}: {len(numbers)} numbers for the sizes {'×'.join(map(str, shape))}")
        if arrays and arrays[0].shape != shape:
            raise UnreadableArray(f"line {at}: other sizes than on the first line")
        arrays.append(np.array(numbers, dtype=np.float64).reshape(shape))
    return arrays[0] if len(arrays) == 1 else np.stack(arrays)


def _number(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnreadableArray(f"line {line}: {text.strip()[:40]!r} is not a number") from None


def _size(text: str, line: int) -> int:
    if not text.strip().isdigit():
        raise UnreadableArray(f"line {line}: {text.strip()[:40]!r} is not a size")
    return int(text)


def _safetensors(file: BinaryIO) -> Dict[str, Any]:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(_MOST_HEADER_BYTES, os.fstat(file.fileno()).st_size - 8):
        raise UnreadableArray("is no safetensors file: its header has an impossible length")
    header = json.loads(file.read(length))
    data = file.read()
    return {name: _tensor(name, body, data) for name, body in header.items() if name != "__metadata__"}


def _tensor(name: str, body: Dict[str, Any], data: bytes) -> Any:
    kind: Optional[str] = _TYPES.get(str(body["dtype"]))
    begin, end = body["data_offsets"]
    shape: Tuple[int, ...] = tuple(body["shape"])
    if kind is None or not 0 <= begin <= end <= len(data):
        raise UnreadableArray(f"'{name}' is outside the file, or of an unknown type ({body['dtype']})")
    array = np.frombuffer(data[begin:end], dtype=kind)
    if body["dtype"] == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.reshape(shape)

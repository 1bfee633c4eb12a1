"""A digest of the values of a model's parameters, buffers and other tensors, at about the speed of memory.

Each tensor is read as 8-byte integers laid out as a square; the sums over its rows and columns, which wrap around, are
hashed. The digest tells whether weights are the same; it does not resist forgery.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import sys
from typing import Any, Iterable, Iterator, Optional, Tuple

from benchmodels.hooks.import_watch import attributes_of, members_of, pass_on_signal
from benchmodels.pytorch.module_parts import buffers_of, parameters_of, parts_of
from benchmodels.pytorch.unrecorded import has_values, is_torch_tensor, shape_of, unrecorded
from benchmodels.types import Module, Tensor, Value

LENGTH = 16
MAX_DEPTH = 3
MAX_PARTS = 4096


def weights_digest(module: Module) -> Optional[str]:
    """None if the values cannot be read: not materialised yet, or in an opaque format."""
    return tensors_digest(_tensors(module))


def tensors_digest(tensors: Iterable[Tuple[str, Any]]) -> Optional[str]:
    """The same for named tensors."""
    digest = hashlib.sha256()
    try:
        with unrecorded(), _torch().no_grad():
            for name, tensor in tensors:
                digest.update(f"{name} {shape_of(tensor)} {tensor.dtype}\0".encode())
                _add(digest, tensor)
    except Exception as error:  # a tensor class may refuse anything
        pass_on_signal(error)
        return None
    return digest.hexdigest()[:LENGTH]


def _torch() -> Any:
    return sys.modules["torch"]


def _tensors(module: Module) -> Iterator[Tuple[str, Any]]:
    yield from parameters_of(module)
    yield from buffers_of(module)
    for path, part in parts_of(module):
        for name, value in attributes_of(part).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                yield from _loose(f"{path}.{name}", value, 0)


def _loose(name: str, value: Value, depth: int) -> Iterator[Tuple[str, Any]]:
    """Tensors and arrays that are plain attributes, or inside a list or dictionary that is one."""
    if is_torch_tensor(value):
        yield name, value
    elif type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        if value.dtype.kind in "biufc":
            yield name, _torch().from_numpy(value.copy())
    elif type(value) in (list, tuple, dict) and depth < MAX_DEPTH:
        for key, part in members_of(value)[:MAX_PARTS]:
            yield from _loose(f"{name}.{key if type(key) in (str, int) else type(key).__name__}", part, depth + 1)


def _add(digest: Any, tensor: Tensor) -> None:
    torch = _torch()
    if not has_values(tensor):
        raise ValueError("the tensor has no values")
    values = tensor.detach()
    if values.is_quantized:
        values = values.int_repr()
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    values = values.contiguous().reshape(-1).view(torch.uint8)
    whole = values.numel() // 8 * 8
    if values.storage_offset() * values.element_size() % 8 or values.data_ptr() % 8:
        values = values.clone()
    numbers = values[:whole].view(torch.int64)
    for sums in _sums(numbers):
        digest.update(_bytes(sums))
    digest.update(_bytes(values[whole:]))


def _sums(numbers: Any) -> Iterator[Any]:
    count = numbers.numel()
    width = max(1, 1 << (math.isqrt(count).bit_length()))
    square = numbers[: count // width * width].view(-1, width)
    yield square.sum(0)
    yield square.sum(1)
    yield numbers[count // width * width :]


def _bytes(tensor: Tensor) -> bytes:
    on_host = tensor.contiguous().cpu()
    size = on_host.numel() * on_host.element_size()
    if size and not on_host.data_ptr():
        raise ValueError("the tensor has no values")
    return ctypes.string_at(on_host.data_ptr(), size) if size else b""

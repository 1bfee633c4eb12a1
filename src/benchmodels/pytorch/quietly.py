"""torch asked without anybody noticing: neither the program's tensors with code of their own, nor its modes, nor a profiler."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Iterator, Optional, Tuple

from benchmodels.hooks.looking import ABSENT, class_attribute, is_a
from benchmodels.types import Tensor, Value


class Undescribed(Exception):
    """Something that is left alone; the text says what it is."""


@contextmanager
def quietly() -> Iterator[None]:
    """While it lasts, operators and attributes of tensors are torch's own, whatever class they are of."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    core = torch._C
    with ExitStack() as stack:
        for name in ("DisableTorchFunction", "_DisableTorchDispatch"):
            guard = getattr(core, name, None)
            if guard is not None:
                stack.enter_context(guard())
        record = getattr(getattr(core, "_autograd", None), "_enable_record_function", None)
        if record is not None:
            record(False)
            stack.callback(record, True)
        yield


def shape_of(tensor: Tensor) -> Tuple[int, ...]:
    """Of a tensor of torch, asked quietly; Undescribed where it has none."""
    if tensor.is_nested:
        raise Undescribed("a nested tensor")
    shape = tensor.shape
    if not all(type(size) is int for size in shape):
        raise Undescribed(f"a tensor whose shape is not known ({type(tensor).__name__})")
    return tuple(shape)


def has_values(tensor: Tensor) -> bool:
    """Whether its numbers lie in memory as they are; those of a tensor that answers by code of its own do not."""
    torch: ModuleType = sys.modules["torch"]
    found = class_attribute(type(tensor), "__torch_dispatch__")
    plain = found is ABSENT or found is torch._C._disabled_torch_dispatch_impl or is_plain_dispatch(found)
    return bool(plain and not tensor.is_nested and tensor.device.type != "meta")


def is_plain_dispatch(found: Any) -> bool:
    torch: ModuleType = sys.modules["torch"]
    own: Optional[Any] = class_attribute(torch.Tensor, "__torch_dispatch__")
    return found is own


def is_torch_tensor(value: Value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and is_a(value, torch.Tensor)

"""Uses torch unnoticed: by tensor subclasses of the program, by its torch modes, and by a profiler."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Iterator, Tuple

from benchmodels.hooks.import_watch import ABSENT, class_attribute, is_a
from benchmodels.types import Tensor, Value


class Undescribed(Exception):
    """An input that cannot be described; the text says what it is."""


@contextmanager
def unrecorded() -> Iterator[None]:
    """Inside, operators and attributes of tensors are torch's own, whatever their class."""
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
    """A torch tensor's shape; call it quietly. Raises Undescribed if it has none."""
    if tensor.is_nested:
        raise Undescribed("a nested tensor")
    shape = tensor.shape
    if not all(type(size) is int for size in shape):
        raise Undescribed(f"a tensor of unknown shape ({type(tensor).__name__})")
    return tuple(shape)


def has_values(tensor: Tensor) -> bool:
    """Whether its values lie in memory as they are; those of a subclass with its own `__torch_dispatch__` may not."""
    torch: ModuleType = sys.modules["torch"]
    found = class_attribute(type(tensor), "__torch_dispatch__")
    usual = (ABSENT, torch._C._disabled_torch_dispatch_impl, class_attribute(torch.Tensor, "__torch_dispatch__"))
    return any(found is one for one in usual) and not tensor.is_nested and tensor.device.type != "meta"


def is_torch_tensor(value: Value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and is_a(value, torch.Tensor)

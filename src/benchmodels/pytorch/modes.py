"""The modes a script may be in when it calls a model, such as inference mode or autocast, and how to step out of them."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, Tuple

from benchmodels.identity.identity import uncompiled
from benchmodels.types import Module, Value


@contextmanager
def as_outside_of_modes() -> Iterator[None]:
    """As at the top of a script: gradients on, no inference mode, no autocast."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if device == "cpu" or torch.cuda.is_available():
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def undo_compilation(module: Module) -> None:
    """Takes `torch.compile` away from a module and from its parts, so that it can be run, exported or compiled afresh."""
    for part in list(module.modules()):
        if part.__dict__.get("_compiled_call_impl") is not None:
            part._compiled_call_impl = None
        for name, inner in list(part._modules.items()):
            if inner is not None and uncompiled(inner) is not inner:
                part._modules[name] = uncompiled(inner)


def plain_inputs(args: Tuple[Value, ...], kwargs: Dict[str, Value]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The same inputs without the history of how they were computed. Objects of other classes stay as they are."""
    return tuple(_plain(value) for value in args), {name: _plain(value) for name, value in kwargs.items()}


def _plain(value: Value) -> Any:
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        if value.is_inference():
            return value.clone()
        return value.detach() if value.requires_grad else value
    if type(value) in (list, tuple):
        return type(value)(_plain(part) for part in value)
    if type(value) is dict:
        return {name: _plain(part) for name, part in value.items()}
    return value

"""Makes exports to ONNX quicker for tests that do many in one process."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any


def read_operators_once() -> None:
    """torch reads the sources of its 500 ONNX operators at every export, and that takes longer than a small model does.

    It does not change what it has read.
    """
    if importlib.util.find_spec("onnxscript") is None:
        return
    from torch.onnx._internal.exporter import _registration

    registry: Any = _registration.ONNXRegistry
    if not hasattr(registry.from_torchlib, "cache_info"):
        registry.from_torchlib = staticmethod(functools.cache(registry.from_torchlib))

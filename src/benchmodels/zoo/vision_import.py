"""Imports torchvision that is built for CUDA beside a torch that is not.

Its compiled part does not load there, and the import fails because two operators are unknown. Only if they are, this declares
them, without kernels: models written in Python work, detection says that its operators are missing.
"""

from __future__ import annotations

import os
from importlib import import_module, util
from typing import Any, List, Optional

OPERATORS = ("nms", "qnms")
_kept: List[Any] = []  # what a library defines goes with it
_reasons: List[str] = []  # why the compiled part does not load


def torchvision() -> Any:
    """The package; ImportError says why it cannot be imported."""
    declare_operators()
    return import_module("torchvision")


def declare_operators() -> None:
    """Does nothing where the compiled part loads, or where torchvision is not installed."""
    spec = util.find_spec("torchvision")
    if _kept or spec is None or not spec.submodule_search_locations:
        return
    torch: Any = import_module("torch")
    compiled = os.path.join(spec.submodule_search_locations[0], "_C.so")
    try:
        torch.ops.load_library(compiled)
        return
    except OSError as error:  # built for another torch, or for CUDA
        _reasons.append(str(error).splitlines()[0])
    if any(hasattr(torch.ops.torchvision, name) for name in OPERATORS):
        return  # already declared, or built in
    library = torch.library.Library("torchvision", "DEF")
    for name in OPERATORS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


def why_no_operators() -> Optional[str]:
    """Why detection does not work, whose operators are compiled; None if it does."""
    extension: Any = import_module("torchvision.extension")
    if extension._has_ops():
        return None
    why = f" ({_reasons[0]})" if _reasons else ""
    return (
        f"torchvision's compiled operators, such as nms, do not load beside this torch{why}; install one built for it"
    )

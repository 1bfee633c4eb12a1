"""Lets torchvision and torchaudio that are built for CUDA be imported beside a torch that is not.

Their compiled parts do not load there, so the import fails. Just before it, and only if the compiled part really does not load,
this module declares torchvision's missing operators, without kernels, and marks torchaudio's extension as absent. What is
written in Python then works; what needs the compiled part raises the package's own error.

The .pth file beside this one imports it in every interpreter of the environment.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

OPERATORS = ("nms", "qnms")  # those that torchvision describes whether or not they are there
_kept: list[Any] = []  # what a library defines goes with it


class BeforeImport(MetaPathFinder):
    """Is asked first, and leaves the rest to the others."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == "torchvision":
            define_operators()
        elif name == "torchaudio._extension.utils":
            found = PathFinder.find_spec(name, path)
            if found is not None and found.loader is not None:
                found.loader = Forgiving(found.loader)
            return found
        return None


class Forgiving(Loader):
    """Loads torchaudio's module that loads its libraries; one that does not load then counts as absent."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        load = getattr(module, "_load_lib", None)
        if load is None:
            return

        def loaded(library: str) -> bool:
            try:
                return bool(load(library))
            except OSError:
                return False

        module._load_lib = loaded  # type: ignore[attr-defined]


def define_operators() -> None:
    found = PathFinder.find_spec("torchvision")
    if _kept or found is None or not found.submodule_search_locations:
        return
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return  # torchvision says so itself
    try:
        torch.ops.load_library(os.path.join(found.submodule_search_locations[0], "_C.so"))
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for name in OPERATORS:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


sys.meta_path.insert(0, BeforeImport())

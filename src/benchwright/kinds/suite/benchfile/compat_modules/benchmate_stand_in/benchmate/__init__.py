"""benchwright's stand-in for milabench's benchmate: the names that its public benchmarks use, for suites that lack the package.

It needs voir; torch, torchcompat, torchvision, jax and tqdm only where a benchmark uses what is made of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

REMEDY = "copy milabench's benchmate folder to beside benchmarks/, or name where to get it in requirements.in"


class UnknownModules(MetaPathFinder):
    """Is asked last: says what is missing, instead of "No module named"."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith(f"{__name__}."):
            raise ModuleNotFoundError(f"benchwright's stand-in for benchmate has no {name}; {REMEDY}")


def unknown_names(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__` that says which name is missing."""

    def unknown(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(f"benchwright's stand-in for benchmate has no {module}.{name}; {REMEDY}")

    return unknown


sys.meta_path.append(UnknownModules())

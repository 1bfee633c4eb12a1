"""Packages whose modules are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def import_submodule(package: str, name: str) -> ModuleType:
    """The body of a package's `__getattr__`; AttributeError if there is no such module."""
    module = f"{package}.{name}"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

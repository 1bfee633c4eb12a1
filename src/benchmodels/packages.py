"""Scripts that are part of a package: they run as `python -m package.module` does, where their relative imports work."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType
from typing import NamedTuple, Optional

MAIN = "__main__.py"


class PackageModule(NamedTuple):
    """`name`: such as `package.tools.train`. `root`: the folder that holds the package."""

    name: str
    root: str

    @property
    def package(self) -> str:
        return self.name.rpartition(".")[0]


def module_of(script: str, source: bytes) -> Optional[PackageModule]:
    """The module that this file can only be run as; None for a plain script.

    It is one if it has relative imports, or is the `__main__.py` of a package.
    """
    folder, file = os.path.split(os.path.realpath(script))
    of_package = os.path.isfile(os.path.join(folder, "__init__.py"))
    if not (_imports_relatively(source) or (file == MAIN and of_package)):
        return None
    names = [os.path.splitext(file)[0], os.path.basename(folder)]
    root = os.path.dirname(folder)
    while os.path.isfile(os.path.join(root, "__init__.py")) and os.path.dirname(root) != root:
        names.append(os.path.basename(root))
        root = os.path.dirname(root)
    return PackageModule(".".join(reversed(names)), root)


def _imports_relatively(source: bytes) -> bool:
    """Outside `try`, where a script may have another import for when it is run by itself."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(statement, ast.ImportFrom) and statement.level for statement in body)


def become_module(main: ModuleType, module: PackageModule) -> None:
    """Has `main` import relatively, and processes that it spawns find it."""
    script = str(main.__file__)
    loader = importlib.machinery.SourceFileLoader("__main__", script)
    main.__package__ = module.package
    main.__spec__ = importlib.machinery.ModuleSpec(module.name, loader, origin=script)


def find_own_package(script: str) -> None:
    """Makes the package around a plain script importable, unless it is: `-m` would."""
    folder = os.path.dirname(os.path.realpath(script))
    top = ""
    while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.dirname(folder) != folder:
        folder, top = os.path.split(folder)
    if top and top not in sys.modules and importlib.util.find_spec(top) is None:
        sys.path.insert(1, folder)

"""Our stand-in for benchmate: where it lies, and which names a script imports from benchmate that it does not have."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

STAND_IN = str(Path(__file__).parent / "compat_modules" / "benchmate_stand_in")
_PACKAGE = "benchmate"


class Unknown(msgspec.Struct, frozen=True):
    """A name that is not there, such as benchmate.metrics.Sparkle, and the line that imports it."""

    name: str
    line: int


def unknown_imports(text: bytes) -> Iterator[Unknown]:
    """Of the imports at the top of a script: one in a function or in `try` may never happen."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # whoever runs it will say so
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == _PACKAGE:
            module = (node.module or "").partition(".")[2]
            known = _names(module) if module else _modules()
            for alias in node.names:
                if known is None or alias.name not in known:
                    yield Unknown(f"{node.module}{'' if known is None else '.' + alias.name}", node.lineno)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top, _, module = alias.name.partition(".")
                if top == _PACKAGE and module and _names(module) is None:
                    yield Unknown(alias.name, node.lineno)


@functools.cache
def _modules() -> frozenset[str]:
    return frozenset(name.removesuffix(".py") for name in os.listdir(os.path.join(STAND_IN, _PACKAGE)))


@functools.cache
def _names(module: str) -> frozenset[str] | None:
    """What a module of it defines or imports; None if there is no such module."""
    try:
        with open(os.path.join(STAND_IN, _PACKAGE, f"{module}.py"), "rb") as file:
            tree = ast.parse(file.read())
    except OSError:
        return None
    found = {"*"}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return frozenset(found)

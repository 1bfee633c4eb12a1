"""Which scripts may start in a process that has imported torch: scripts that do nothing else before they import it."""

from __future__ import annotations

import ast
import os
import sys
from typing import FrozenSet, Iterator, Optional, Set

from benchmodels.compat import PACKAGES

# They import torch before they do anything that torch would notice.
_HARMLESS = frozenset(
    "accelerate benchmodels benchprobe datasets diffusers huggingface_hub numpy PIL requests safetensors "
    "timm torch_geometric torchaudio torchvision transformers".split()
).union(PACKAGES)


def why_cold(script: str, imported: FrozenSet[str]) -> Optional[str]:
    """Why this script needs a fresh process; None if it may begin with `imported` imported."""
    try:
        with open(script, "rb") as file:
            statements = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError):
        return "the script cannot be read"  # a fresh interpreter says why
    beside = _modules_in(os.path.dirname(os.path.abspath(script))) & _loaded()
    if beside:
        return f"{min(beside)} beside the script would be imported in place of the module of that name"
    for statement in statements:
        names = set(_imported_by(statement))
        if names & imported:
            return None
        if not names and not _is_plain(statement):
            return f"line {statement.lineno} comes before the script imports {' or '.join(sorted(imported))}"
        strange = sorted(name for name in names if not _is_harmless(name))
        if strange:
            return f"the script imports {strange[0]} before {' or '.join(sorted(imported))}"
    return f"the script does not import {' or '.join(sorted(imported))} at its beginning"


def _imported_by(statement: ast.stmt) -> Iterator[str]:
    """Top-level names; a relative import has none."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.name.partition(".")[0]
    elif isinstance(statement, ast.ImportFrom):
        yield "." if statement.level else (statement.module or "").partition(".")[0]


def _is_plain(statement: ast.stmt) -> bool:
    """Whether it is a docstring, or only gives a name to a constant."""
    if isinstance(statement, ast.Assign):
        named = all(isinstance(target, ast.Name) for target in statement.targets)
    elif isinstance(statement, ast.AnnAssign):
        named = isinstance(statement.target, ast.Name)
    else:
        named = isinstance(statement, ast.Expr)
    return named and isinstance(getattr(statement, "value", None), ast.Constant)


def _is_harmless(name: str) -> bool:
    known = getattr(sys, "stdlib_module_names", None)  # since Python 3.10
    of_python = name in sys.builtin_module_names or name in _loaded() if known is None else name in known
    return of_python or name in _HARMLESS


def _modules_in(folder: str) -> Set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name[:-3] if entry.name.endswith(".py") else entry.name for entry in entries}
    except OSError:
        return set()


def _loaded() -> Set[str]:
    """Top-level modules that came from files, of which a folder could have others."""
    return {name.partition(".")[0] for name, module in list(sys.modules.items()) if getattr(module, "__file__", None)}

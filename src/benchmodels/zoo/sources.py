"""Models of a library, read from its source text without importing it."""

from __future__ import annotations

import re
from importlib import util
from pathlib import Path
from typing import Iterator, List, Tuple


def package_folder(package: str) -> Path:
    """The folder of an installed package. Does not import it."""
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named '{package}'")
    return Path(spec.submodule_search_locations[0])


def decorated(folder: Path, pattern: str) -> Iterator[Tuple[Path, str, str]]:
    """File, decorator and name of each function below `folder` with a decorator that matches, by file."""
    functions = re.compile(rf"^({pattern}.*)\n(?:@.*\n|[ )].*\n)*def (\w+)", re.MULTILINE)
    for path in sorted(folder.rglob("*.py")):
        for found in functions.finditer(path.read_text(encoding="utf-8", errors="replace")):
            yield path, found[1], found[2]


def exported_names(path: Path) -> List[str]:
    """The names in `__all__` of a module."""
    import ast

    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []

"""Jupyter notebooks as scripts: their code cells in order, without what only IPython can run."""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Dict, List, NamedTuple, Tuple

SUFFIX = ".ipynb"
RUNS_THE_REST = ("time", "timeit", "capture", "prun")  # magics that run Python
_MAGIC = re.compile(r"(\s*)(%|!|\?)(.*)")
_TIMED = re.compile(r"(\s*)%(?:time|timeit)\s+(?!-)(.+)")
_ASSIGNED = re.compile(r"\s*[\w.,\s]+=\s*([%!]\S.*)")


class CellPlace(NamedTuple):
    """A line of a notebook; both numbers count from 1, cells as Jupyter shows them: all kinds together."""

    cell: int
    line: int


class NotebookScript(NamedTuple):
    """`source`: as one script. `places`: of its lines. `skipped`: what was left out, in words."""

    source: str
    places: Tuple[CellPlace, ...]
    skipped: Tuple[str, ...]

    def place(self, line: int) -> CellPlace:
        """Of a line of `source`."""
        return self.places[min(max(line, 1), len(self.places)) - 1] if self.places else CellPlace(1, 1)


def is_notebook(path: str) -> bool:
    return path.lower().endswith(SUFFIX)


def read_notebook(content: bytes) -> NotebookScript:
    """ValueError if it is no notebook, or has a line that cannot be left out."""
    lines: List[str] = []
    places: List[CellPlace] = []
    skipped: List[str] = []
    for number, source in _code_cells(content):
        for at, line in enumerate(_python(source, number, skipped), start=1):
            lines.append(line)
            places.append(CellPlace(number, at))
    return NotebookScript("\n".join(lines) + "\n", tuple(places), tuple(skipped))


def display(*values: Any, **_: Any) -> None:
    """IPython's, as it is without a page to show anything on."""
    for value in values:
        print(repr(value))


def _code_cells(content: bytes) -> List[Tuple[int, str]]:
    try:
        body: Any = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"not a notebook: {error}") from None
    cells = body.get("cells") if isinstance(body, dict) else None
    if not isinstance(cells, list):
        raise ValueError("not a notebook of format 4: it has no cells")
    found: List[Tuple[int, str]] = []
    for number, cell in enumerate(cells, start=1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source: Any = cell.get("source", "")
            found.append((number, source if isinstance(source, str) else "".join(map(str, source))))
    return found


def _python(source: str, cell: int, skipped: List[str]) -> List[str]:
    """The lines of a cell, as many as it has."""
    lines = source.split("\n")
    if _is_python(source):
        return lines
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        words = lines[first][2:].split()
        if not words or words[0] not in RUNS_THE_REST:
            skipped.append(f"cell {cell} ({lines[first].strip()[:40]})")
            return [""] * len(lines)
        lines[first] = ""
        if _is_python("\n".join(lines)):
            return lines
    return [_without_magic(line, CellPlace(cell, at), skipped) for at, line in enumerate(lines, start=1)]


def _without_magic(line: str, place: CellPlace, skipped: List[str]) -> str:
    timed = _TIMED.fullmatch(line)
    if timed is not None:
        return timed[1] + timed[2]
    assigned = _ASSIGNED.fullmatch(line)
    if assigned is not None:
        raise ValueError(
            f"cell {place.cell}, line {place.line}: only IPython can run '{assigned[1].strip()[:40]}', whose value is used"
        )
    magic = _MAGIC.fullmatch(line)
    if magic is None and not line.rstrip().endswith("?"):
        return line
    skipped.append(f"cell {place.cell}, line {place.line} ({line.strip()[:40]})")
    return (magic[1] if magic is not None else "") + "pass"


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


OPENED: Dict[str, NotebookScript] = {}  # by absolute path: those that this process runs

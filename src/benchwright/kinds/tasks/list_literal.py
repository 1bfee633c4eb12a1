"""The Python list literals of a task file: only strings, nothing is evaluated, every element knows its place."""

from __future__ import annotations

import ast
import warnings

import msgspec

from benchwright.kinds.tasks.syntax import TaskEntry, TaskFile
from benchwright.kinds.text_file import TextPlace


class Element(msgspec.Struct, frozen=True):
    """One string of a list. `place` is where its literal, quote included, begins."""

    text: str
    place: TextPlace


def read_list(file: TaskFile, entry: TaskEntry) -> list[Element]:
    """The strings of a value such as `['speed', 'accuracy']`; InvalidInput where it is anything else."""
    tree = _parse(file, entry)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        raise file.error(
            f"'{entry.key}' is a string, not a list", entry.value_place, f"put it in brackets: [{entry.value}]"
        )
    if not isinstance(tree, ast.List):
        raise file.error(f"'{entry.key}' is not a list", entry.value_place, "write ['first', 'second']")
    return [_element(file, entry, node) for node in tree.elts]


def place_in_literal(file: TaskFile, element: Element, position: int) -> TextPlace:
    """Where character `position` of the element's text stands; its literal's beginning if escapes make that unsure."""
    line, start = file.lines[element.place.line - 1], element.place.column - 1
    for opening in ("'", '"', "r'", 'r"'):
        begin = start + len(opening)
        if line[start:begin] == opening and line[begin : begin + len(element.text)] == element.text:
            return TextPlace(element.place.line, begin + position + 1)
    return element.place


def _parse(file: TaskFile, entry: TaskEntry) -> ast.expr:
    try:
        # '\d' in a plain string is an unknown escape, kept as it is: Python warns, every task file has it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(entry.value, mode="eval").body
    except SyntaxError as error:
        place = _python_place(entry, error.lineno or 1, (error.offset or 1) - 1)
        raise file.error(f"'{entry.key}' is not a list: {error.msg}", place, "write ['first', 'second']") from None
    except (ValueError, RecursionError, MemoryError):
        raise file.error(f"'{entry.key}' is not a list", entry.value_place, "write ['first', 'second']") from None


def _element(file: TaskFile, entry: TaskEntry, node: ast.expr) -> Element:
    part = entry.parts[min(node.lineno, len(entry.parts)) - 1]
    # The parser counts columns in bytes of UTF-8.
    characters = len(part.text.encode("utf-8", "surrogatepass")[: node.col_offset].decode("utf-8", "replace"))
    place = _python_place(entry, node.lineno, characters)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Element(node.value, place)
    raise file.error(f"an element of '{entry.key}' is not a string", place, "write it in quotes")


def _python_place(entry: TaskEntry, lineno: int, column: int) -> TextPlace:
    """The place in the file of Python's 1-based line and 0-based column in the value."""
    part = entry.parts[min(max(lineno, 1), len(entry.parts)) - 1]
    return TextPlace(part.place.line, part.place.column + min(max(column, 0), len(part.text)))

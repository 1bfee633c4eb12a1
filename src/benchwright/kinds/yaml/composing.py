"""Text to YAML nodes by PyYAML's C parser, guarded; and its complaints in words with a remedy."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.nodes import Node
from yaml.reader import Reader, ReaderError

from benchwright.kinds.text_file import TextPlace

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # built without libyaml: the same, slower
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

DEEPEST = 100
_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # where the parser counts a new line

_REMEDIES = {
    "found character that cannot start any token": "put the value in quotes",
    "mapping values are not allowed": "put the value in quotes if it holds ': ', and check the indentation",
    "could not find expected ':'": "a key is followed by ': '; check the indentation of the lines around",
    "did not find expected key": "check the indentation of this line and the ones above",
    "did not find expected '-' indicator": "check the indentation of this line and the ones above",
    "found unexpected end of stream": "close the quote, [ or { that was opened",
    "did not find expected ',' or": "close the [ or { that was opened, and put commas between items",
    "did not find expected node content": "write a value, or close the [ or { that was opened",
    "found undefined alias": "define it before with &, or put the value in quotes",
    "expected a single document": "put one document in a file: remove the second ---",
    "but found another document": "put one document in a file: remove the second ---",
}


class TooDeep(Exception):
    """The text nests deeper than DEEPEST; without this guard the C parser overruns its stack."""

    def __init__(self, mark: Any) -> None:
        super().__init__("nested too deep")
        self.mark = mark


class Composer(_Loader):
    """Composes nodes only; the parser calls the two hooks around every node."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooDeep(None if current_node is None else current_node.start_mark)

    def ascend_resolver(self) -> None:
        self.depth -= 1


def compose(text: str) -> tuple[Composer, Node | None]:
    """The one document in `text`; None: it has none. Raises TooDeep or what PyYAML raises."""
    composer = Composer(text)
    return composer, composer.get_single_node()


def syntax_error(error: Exception, text: str) -> tuple[str, TextPlace, str]:
    """What is wrong, where, and what to do, from an exception of PyYAML."""
    if isinstance(error, ReaderError | UnicodeError):
        return _bad_character(text)
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"this is not YAML: {error}", TextPlace(1, 1), "check the file"
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "it cannot be understood"
    place = TextPlace(1, 1) if mark is None else TextPlace(mark.line + 1, mark.column + 1)
    remedy = next((r for part, r in _REMEDIES.items() if part in problem), "check the indentation and the quotes")
    if line_of(text, place.line)[place.column - 1 : place.column] == "\t":
        return "this is not YAML: a tab where none may be", place, "indent with spaces"
    opened = error.context_mark.line + 1 if error.context_mark is not None else place.line
    if error.context and opened < place.line:
        return f"this is not YAML: {problem} {error.context} from line {opened}", place, remedy
    return f"this is not YAML: {problem}", place, remedy


def line_of(text: str, number: int) -> str:
    """The line `number` of `text`, counted from 1 as the parser does; empty behind the end."""
    lines = _LINE_BREAK.split(text)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _bad_character(text: str) -> tuple[str, TextPlace, str]:
    found = Reader.NON_PRINTABLE.search(text)
    position = found.start() if found else 0
    before = text[:position]
    line_start = before.rfind("\n") + 1
    place = TextPlace(before.count("\n") + 1, position - line_start + 1)
    character = f"the character U+{ord(text[position]):04X}" if position < len(text) else "a character"
    return f"{character} is not allowed in YAML", place, "remove it; this may be a binary file, or not UTF-8"

"""The text of the user's own functions, as far as it changes what they do: without comments, blanks and line breaks inside."""

from __future__ import annotations

import inspect
import io
import re
import textwrap
import tokenize
import types
from typing import Any, Iterator, List, Optional, Tuple

from benchmodels.discover.callers import is_library
from benchmodels.hooks.looking import is_a
from benchmodels.types import Value

_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|hpu|meta)(:\d+)?")
_DROPPED = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER, tokenize.ENCODING)
_MARKS = {tokenize.NEWLINE: ";", tokenize.INDENT: "{", tokenize.DEDENT: "}"}


def is_own(function: Any) -> bool:
    """Whether a function or class is the user's own, not one of an installed package or of Python."""
    if is_a(function, types.FunctionType):
        return not is_library(function.__code__.co_filename)
    if not is_a(function, type):
        return False
    try:
        return not is_library(inspect.getfile(function))
    except (TypeError, OSError):
        return False


def names_this_machine(value: Value) -> bool:
    """Whether a value is a place in the file system or a device: a model is the same one wherever it is."""
    return is_a(value, str) and (str.startswith(value, ("/", "~")) or _DEVICE.fullmatch(value) is not None)


def function_text(function: Any) -> Optional[str]:
    """None where there is no source."""
    try:
        code = getattr(function, "__code__", function)  # its own, not that of what it wraps
        return normalised(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, tokenize.TokenError, IndentationError):
        return None


def normalised(source: str) -> str:
    """The same for sources that differ in comments and blanks only, in every version of Python."""
    lines = source.splitlines(True)
    pieces: List[str] = []
    for kind, start, end in _spans(source):
        if kind in _MARKS:
            pieces.append(_MARKS[kind])
        elif kind not in _DROPPED:
            pieces.append(_between(lines, start, end))
    return " ".join(pieces)


def _spans(source: str) -> Iterator[Tuple[int, Tuple[int, int], Tuple[int, int]]]:
    """Tokens and where they are. An f-string is one of them, as it was before Python 3.12 took it apart."""
    begins, ends = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)
    depth, start = 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == begins:
            start = start if depth else token.start
            depth += 1
        elif token.type == ends:
            depth -= 1
            if not depth:
                yield tokenize.STRING, start, token.end
        elif not depth:
            yield token.type, token.start, token.end


def _between(lines: List[str], start: Tuple[int, int], end: Tuple[int, int]) -> str:
    (first, begin), (last, stop) = start, end
    if first == last:
        return lines[first - 1][begin:stop]
    return "".join([lines[first - 1][begin:], *lines[first : last - 1], lines[last - 1][:stop]])

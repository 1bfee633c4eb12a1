"""The source of the user's functions, reduced to what changes their behaviour: no comments, no layout."""

from __future__ import annotations

import inspect
import io
import re
import textwrap
import tokenize
import types
from typing import Any, Iterator, Optional, Tuple

from benchmodels.discover.callers import is_library
from benchmodels.hooks.import_watch import is_a
from benchmodels.types import Value

_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|hpu|meta)(:\d+)?")
_DROPPED = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER, tokenize.ENCODING)
_MARKS = {tokenize.NEWLINE: ";", tokenize.INDENT: "{", tokenize.DEDENT: "}"}


def is_own(function: Any) -> bool:
    """Whether the user wrote this function or class: it belongs neither to Python nor to an installed package."""
    if is_a(function, types.FunctionType):
        return not is_library(function.__code__.co_filename)
    if not is_a(function, type):
        return False
    try:
        return not is_library(inspect.getfile(function))
    except (TypeError, OSError):
        return False


def names_this_machine(value: Value) -> bool:
    """Whether a value is a path or a device, neither of which changes which model this is."""
    return is_a(value, str) and (str.startswith(value, ("/", "~")) or _DEVICE.fullmatch(value) is not None)


def function_text(function: Any) -> Optional[str]:
    """Its normalised source; None if there is none."""
    try:
        code = getattr(function, "__code__", function)  # not that of the function it wraps
        return normalised(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return None


def normalised(source: str) -> str:
    """Equal for sources that differ only in comments and white space, whatever the Python version."""
    return " ".join(_MARKS.get(kind, text) for kind, text in _tokens(source) if kind not in _DROPPED)


def _tokens(source: str) -> Iterator[Tuple[int, str]]:
    """Types and texts. Python 3.12 and later split an f-string into tokens; here it is one STRING, as before."""
    begins, ends = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)
    lines = io.StringIO(source).readlines()
    depth, first, begin = 0, 0, 0
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.type == begins:
            first, begin = (first, begin) if depth else token.start
            depth += 1
        elif token.type == ends:
            depth -= 1
            if not depth:
                last, stop = token.end
                text = "".join(lines[first - 1 : last])
                yield tokenize.STRING, text[begin : len(text) - len(lines[last - 1]) + stop]
        elif not depth:
            yield token.type, token.string

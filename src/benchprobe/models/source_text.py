"""The text of the user's own functions, as far as it changes what they do: without comments, blanks and line breaks inside."""

from __future__ import annotations

import inspect
import io
import re
import textwrap
import tokenize
import types
from typing import Any, Dict, Iterator, List, Optional, Tuple

from benchprobe.models.callers import is_library
from benchprobe.models.signatures import simple_text

MAX_FUNCTIONS = 500
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|hpu|meta)(:\d+)?")
_DROPPED = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER, tokenize.ENCODING)
_MARKS = {tokenize.NEWLINE: ";", tokenize.INDENT: "{", tokenize.DEDENT: "}"}


def is_own(function: Any) -> bool:
    """Whether a function or class is the user's own, not one of an installed package or of Python."""
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType):
        return not is_library(code.co_filename)
    try:
        return not is_library(inspect.getfile(function))
    except (TypeError, OSError):
        return False


def texts_of(owner: type, names: Tuple[str, ...]) -> List[List[str]]:
    """Name and text of these methods of a class and of everything of the user's own that they use, in a fixed order.

    Used are methods and attributes of the class, functions and simple values of the module. What has no source is left out.
    """
    texts: Dict[str, str] = {}
    waiting: List[Tuple[Any, type]] = [(method, owner) for name in names for method in _methods(owner, name)]
    while waiting and len(texts) < MAX_FUNCTIONS:
        function, of = waiting.pop()
        name = f"{_module_name(function)}.{function.__qualname__}"
        if name in texts:
            continue
        texts[name] = function_text(function) or ""
        for used in _names_used(function.__code__):
            waiting += [(method, of) for method in _methods(of, used)]
            value = function.__globals__.get(used)
            plain = _plain_function(value)
            if plain is not None and is_own(plain):
                waiting.append((plain, of))
            elif isinstance(value, (bool, int, float, str)) and used[:2] != "__" and not names_this_machine(value):
                texts[f"{_module_name(function)}.{used}"] = simple_text(value) or ""
    return sorted([name, text] for name, text in texts.items())


def names_this_machine(value: Any) -> bool:
    """Whether a value is a place in the file system or a device: a model is the same one wherever it is."""
    return isinstance(value, str) and (value.startswith(("/", "~")) or _DEVICE.fullmatch(value) is not None)


def function_text(function: Any) -> Optional[str]:
    """None where there is no source."""
    try:
        return normalised(textwrap.dedent(inspect.getsource(function)))
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


def _methods(owner: type, name: str) -> List[Any]:
    """The user's own functions of that name in a class and the classes it comes from."""
    found = []
    for kind in owner.__mro__:
        plain = _plain_function(kind.__dict__.get(name))
        if plain is not None and is_own(plain):
            found.append(plain)
    return found


def _plain_function(value: Any) -> Any:
    """The function below static methods, properties and decorators; None if there is none."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    seen = 0
    while hasattr(value, "__wrapped__") and seen < 20:
        value, seen = value.__wrapped__, seen + 1
    return value if isinstance(value, types.FunctionType) else None


def _names_used(code: types.CodeType) -> List[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names_used(constant)
    return sorted(set(names))


def _module_name(function: Any) -> str:
    name = getattr(function, "__module__", None) or ""
    return "__main__" if name == "__mp_main__" else name

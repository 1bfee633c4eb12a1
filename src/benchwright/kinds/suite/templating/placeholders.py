"""Placeholders in the words of a suite: `{name}`, `{a.b}`, `${system.a}`, and the functions auto, auto_batch and expr.

`{{name}}` is `{name}` itself. Braces around anything but a name, such as those of JSON, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.suite.templating.expressions import ExpressionError, Function, evaluate

_NAME = r"[A-Za-z_]\w*(?:\.\w+)*"
_BRACED = rf"(?P<dollar>\$?)\{{(?P<name>{_NAME})\}}"
_PLACEHOLDER = re.compile(rf"\{{\{{{_NAME}\}}\}}|{_BRACED}", re.ASCII)
_TEMPLATE = re.compile(rf"(?:[^{{}}]|\{{\{{|\}}\}}|\{{{_NAME}\}})*", re.ASCII)
_TEMPLATE_PART = re.compile(rf"\{{\{{|\}}\}}|{_BRACED}", re.ASCII)
_CALL = re.compile(r"(?<![\w.])(?:auto_batch|auto|expr)\(", re.ASCII)
_CALL_TOKEN = re.compile(r"""[()]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_ESCAPED = re.compile(r"""['"\\\x00-\x1f]""")  # what may not stand in a quoted text as it is
_MOST_SHOWN = 30  # names in a remedy


class PlaceholderError(InvalidInput):
    """A word that cannot be filled: the word is `text`, the place in it `column`."""


class Context(msgspec.Struct, frozen=True):
    """Names and functions for placeholders."""

    names: Mapping[str, Any]
    functions: Mapping[str, Function] = {}


def fill(text: str, context: Context) -> str:
    """`text` without placeholders; raises PlaceholderError for one that is not known."""
    if "{" not in text and "(" not in text and "}" not in text:
        return text
    parts, at = [], 0
    while (match := _CALL.search(text, at)) is not None:
        end = _end_of_call(text, match)
        parts.append(_substituted(text[at : match.start()], context, text, at))
        parts.append(_called(text, match.start(), end, context))
        at = end
    parts.append(_substituted(text[at:], context, text, at))
    return "".join(parts)


def written(value: object) -> str:
    """A value as a word: whole numbers without `.0`, lists joined by commas."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return ",".join(map(written, value))
    return str(value)


def _substituted(piece: str, context: Context, word: str, start: int) -> str:
    if "{" not in piece and "}" not in piece:
        return piece

    def found(match: re.Match[str]) -> str:
        column = start + match.start() + 1
        value = _look_up(match["name"], match["dollar"], context, word, column)
        if isinstance(value, Mapping):
            parts = ", ".join(f"{{{match['name']}.{part}}}" for part in value)
            raise PlaceholderError(f"{match[0]} is a map", column=column, text=word, remedy=f"name a part: {parts}")
        return written(value)

    # What str.format would take is taken as it takes it; else only what certainly is a placeholder is replaced.
    if _TEMPLATE.fullmatch(piece) is not None:
        return _TEMPLATE_PART.sub(lambda match: found(match) if match["name"] else match[0][0], piece)
    return _PLACEHOLDER.sub(lambda match: found(match) if match["name"] else match[0][1:-1], piece)


def _look_up(name: str, dollar: str, context: Context, word: str, column: int) -> object:
    if dollar and not name.startswith("system."):
        raise PlaceholderError(
            f"${{{name}}} is unknown; only values of the system are written that way",
            column=column,
            text=word,
            remedy=f"write {{{name}}} for a placeholder, ${{{{{name}}}}} for the text itself",
        )
    found: object = context.names
    for number, part in enumerate(name.split(".")):
        if not isinstance(found, Mapping) or part not in found:
            known = list(found) if isinstance(found, Mapping) else []
            prefix = ".".join([*name.split(".")[:number], ""])
            raise _unknown(name, prefix, part, known, word, column)
        found = found[part]
    return found


def _unknown(name: str, prefix: str, part: str, known: list[str], word: str, column: int) -> PlaceholderError:
    near = did_you_mean(part, known)
    if near is not None:
        remedy = near.replace("'", "'{" + prefix, 1).replace("'?", "}'?")
    elif known:
        remedy = "known: " + ", ".join(f"{{{prefix}{n}}}" for n in sorted(known)[:_MOST_SHOWN])
    else:
        remedy = f"write {{{{{name}}}}} for literal braces"
    return PlaceholderError(f"{{{name}}} is not a placeholder", column=column, text=word, remedy=remedy)


def _end_of_call(text: str, match: re.Match[str]) -> int:
    """Just behind the parenthesis that closes the call."""
    depth = 0
    for token in _CALL_TOKEN.finditer(text, match.end() - 1):
        if token[0] in "()":
            depth += 1 if token[0] == "(" else -1
            if depth == 0:
                return token.end()
    raise PlaceholderError(
        f"'{match[0]}' is not closed", column=match.start() + 1, text=text, remedy="close its parenthesis"
    )


def _called(text: str, start: int, end: int, context: Context) -> str:
    try:
        value = evaluate(_as_expression(text[start:end], context, text, start), context.names, context.functions)
    except ExpressionError as error:
        raise PlaceholderError(
            f"'{text[start:end]}': {error.what}", column=start + 1, text=text, remedy=error.remedy
        ) from None
    return written(value)


def _as_expression(call: str, context: Context, word: str, start: int) -> str:
    """Placeholders become names of the expression; inside quotes their text, so that no value is read as code."""
    quoted = [token.span() for token in _CALL_TOKEN.finditer(call) if token[0] not in "()"]

    def value(match: re.Match[str]) -> str:
        if not match["name"]:
            return match[0][1:-1]
        found = _look_up(match["name"], match["dollar"], context, word, start + match.start() + 1)
        if any(begin < match.start() < end for begin, end in quoted):
            return _ESCAPED.sub(lambda character: f"\\x{ord(character[0]):02x}", written(found))
        return f"({match['name']})"

    return _PLACEHOLDER.sub(value, call)

"""Reads the number that a match holds, and tells whether it is only part of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from benchwright.core.pattern import SEPARATORS

_SUFFIXES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_WINDOW = 64  # characters looked at on either side of a match

# Not a single comma: "1,234" is 1234 to some and 1.234 to others.
_THOUSANDS = re.compile(
    r"\s*[-+]?[1-9][0-9]{0,2}(?:(?:,[0-9]{3}){2,}(?:\.[0-9]*)?|,[0-9]{3}\.[0-9]*"
    rf"|(?:[ {SEPARATORS}][0-9]{{3}})+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\s*"
)
# A number as people and programs write it. A list such as 3,100,0.5 is none, nor are the columns of 1 100 0.5.
_WRITTEN = re.compile(
    rf"(?:(?<![\w.)\]])[-+])?(?:[0-9]{{1,3}}([, {SEPARATORS}])[0-9]{{3}}(?:\1[0-9]{{3}})*(?:\.[0-9]+)?(?![0-9]|\1[0-9])"
    r"|[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+(?![0-9.,)\]])|[0-9]+,[0-9]+(?![0-9.,)\]])|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]+|[kKMGT](?!\w))?"
)
_GOES_ON = re.compile(rf"[0-9]|[.,{SEPARATORS}][0-9]|[eE][-+]?[0-9]|[kKMGT](?!\w)| [0-9]{{3}}(?![0-9])")
_MAY_PRECEDE = frozenset("0123456789.,-+" + SEPARATORS)


def read_number(text: str) -> float | None:
    """`text` as a number; None if it is not one or is ambiguous.

    All that `float` reads (sign, exponent, nan, inf), the suffixes k, M, G and T, and thousands separators where they
    cannot be anything else: `1,234.5`, `1,234,567` and `1 234`, but not `1,234`.
    """
    try:
        return float(text)
    except ValueError:
        pass
    factor = _SUFFIXES.get(text.rstrip()[-1:])
    if factor is not None:
        number = read_number(text.rstrip()[:-1])
        return None if number is None else number * factor
    return float(re.sub(rf"[,\s{SEPARATORS}]", "", text)) if _THOUSANDS.fullmatch(text) else None


def whole_number(text: str, start: int, end: int, *, before: bool, after: bool) -> str | None:
    """The number that `text[start:end]` is only part of; None if it is whole.

    `before` and `after`: the sides on which it may go on. A space before it separates columns.
    """
    goes_on = after and _GOES_ON.match(text, end)
    if not goes_on and not (before and start and text[start - 1] in _MAY_PRECEDE):
        return None
    for number in _WRITTEN.finditer(text, max(start - _WINDOW, 0), end + _WINDOW):
        if number.end() >= end:
            first = max(number.start(), text.rfind(" ", 0, start) + 1)
            is_longer = (after and number.end() > end) or (before and first < start)
            return text[first : number.end()] if is_longer and first <= start else None
    return None


def may_be_cut(befores: Sequence[str], afters: Sequence[str]) -> bool:
    """Whether a number between the texts `befores[i]` and `afters[i]` may go on in one of them; quick."""
    return any(map(_GOES_ON.match, afters)) or any(text[-1:] in _MAY_PRECEDE for text in befores)


_FLOATS = msgspec.json.Decoder(list[float])


def read_numbers(texts: Sequence[str | None]) -> list[float] | None:
    """Each text as `float` reads it; None if it refuses one."""
    try:
        # Most numbers in logs are JSON numbers too, and that reader takes half the time.
        values = _FLOATS.decode("[" + ",".join(texts) + "]")  # type: ignore[arg-type]
        if len(values) == len(texts):  # else a text such as "1,5" became two
            return values
    except (msgspec.DecodeError, TypeError, UnicodeError):
        pass
    try:
        return list(map(float, texts))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None

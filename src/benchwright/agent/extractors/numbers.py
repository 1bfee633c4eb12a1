"""Reads the number that a match holds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

# Not a single comma: "1,234" is 1234 to some and 1.234 to others.
_THOUSANDS = re.compile(
    r"\s*[-+]?[1-9][0-9]{0,2}(?:(?:,[0-9]{3}){2,}(?:\.[0-9]*)?|,[0-9]{3}\.[0-9]*)(?:[eE][-+]?[0-9]+)?\s*"
)


def read_number(text: str) -> float | None:
    """`text` as a number; None if it is not one or is ambiguous.

    All that `float` reads (sign, exponent, nan, inf), and thousands separators where they cannot be anything
    else: `1,234.5` and `1,234,567`, but not `1,234`.
    """
    try:
        return float(text)
    except ValueError:
        return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else None


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

"""Reads the number that a match holds."""

from __future__ import annotations

import re

# One comma alone is left out: "1,234" is 1234 to some and 1.234 to others.
_THOUSANDS = re.compile(
    r"\s*[-+]?[1-9][0-9]{0,2}(?:(?:,[0-9]{3}){2,}(?:\.[0-9]*)?|,[0-9]{3}\.[0-9]*)(?:[eE][-+]?[0-9]+)?\s*"
)


def read_number(text: str) -> float | None:
    """The number that `text` is, or None if it is none or can be read in two ways.

    All that `float` reads (sign, exponent, nan, inf), and thousands separators where they cannot be anything
    else: `1,234.5` and `1,234,567`, but not `1,234`.
    """
    try:
        return float(text)
    except ValueError:
        return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else None

"""Text of others (names, commands, annotations) as it may stand in a line on a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def one_line(text: str) -> str:
    """Without line ends and control characters, which could paint over what is on the screen."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def titled(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]


def columns_of(text: str) -> int:
    """How many columns of a terminal it takes: East Asian wide characters take two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(line: str, width: int) -> str:
    """One line that takes no more than `width` columns; a cut is marked."""
    line = one_line(line)
    if columns_of(line) <= width:
        return line
    kept, used = "", 1  # the mark
    for character in line:
        used += _columns(character)
        if used > width:
            break
        kept += character
    return kept + "…"


def packed(parts: Iterable[str], width: int, indent: str, after: str) -> list[str]:
    """Parts side by side, two spaces between them, in as many lines as they need; none is broken, unless it is too long by itself."""
    lines: list[str] = []
    for part in map(one_line, parts):
        if lines and len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append((after if lines else indent) + part)
    return [clip(line, width) for line in lines]

"""Text of others (names, commands, annotations) as it may stand in a line on a terminal."""

from __future__ import annotations

from collections.abc import Iterable


def one_line(text: str) -> str:
    """Without line ends and control characters, which could paint over what is on the screen."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def titled(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]


def clip(line: str, width: int) -> str:
    """One line that is no longer than `width`; a cut is marked."""
    line = one_line(line)
    return line if len(line) <= width else line[: width - 1] + "…"


def packed(parts: Iterable[str], width: int, indent: str, after: str) -> list[str]:
    """Parts side by side, two spaces between them, in as many lines as they need; none is broken, unless it is too long by itself."""
    lines: list[str] = []
    for part in map(one_line, parts):
        if lines and len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append((after if lines else indent) + part)
    return [clip(line, width) for line in lines]

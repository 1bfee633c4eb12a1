"""Text of others (names, commands, annotations) as it may stand in a line on a terminal."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Without line ends and control characters, which could paint over what is on the screen."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def clip(line: str, width: int) -> str:
    """One line that is no longer than `width`; a cut is marked."""
    line = one_line(line)
    return line if len(line) <= width else line[: width - 1] + "…"

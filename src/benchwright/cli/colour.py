"""Colour for people at a terminal; a pipe, a file and $NO_COLOR get none."""

from __future__ import annotations

import os
import re
import sys

_RED, _YELLOW, _GREEN, _FAINT, _END = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
_RULES = (
    (re.compile(r"(FAILED[^:\n]*|▼ regressed|✗)"), _RED),
    (re.compile(r"(⚠|\? inconclusive|(?<=  )interrupted)"), _YELLOW),
    (re.compile(r"(▲ improved)"), _GREEN),
    (re.compile(r"^( saved: .*| {5}\| .*)$", re.MULTILINE), _FAINT),
)


def coloured(text: str) -> str:
    """`text` with what stands out in colour, if stdout is a terminal that wants it."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    if not terminal or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for pattern, colour in _RULES:
        text = pattern.sub(rf"{colour}\1{_END}", text)
    return text

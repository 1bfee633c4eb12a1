"""The unit of a metric, told from the text that follows the number in its pattern."""

from __future__ import annotations

import re

_TIMES = {
    "seconds": "s", "second": "s", "secs": "s", "sec": "s", "s": "s",
    "milliseconds": "ms", "millisecond": "ms", "msec": "ms", "ms": "ms",
    "microseconds": "µs", "usec": "µs", "us": "µs", "nanoseconds": "ns", "ns": "ns",
    "minutes": "min", "hours": "h",
}  # fmt: skip
_SIZES = ("KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB", "bytes")
_FOLLOWS = re.compile(r"(?:\\s[*+]?|\s)?\s?(?:(%)|([A-Za-zµ]+)(?:(?:/| per )(s|sec|second)\b)?)")


def guess_unit(pattern: str) -> str | None:
    """`samples/s` from `Speed: (\\d+) samples/sec`, `ms` from `took (\\d+) milliseconds`; None where nothing tells."""
    end = _end_of_first_group(pattern)
    match = _FOLLOWS.match(pattern, end) if end is not None else None
    if match is None:
        return None
    percent, word, rate = match.groups()
    if percent:
        return "%"
    if rate:
        return f"{word}/s"
    return _TIMES.get(word.lower()) or (word if word in _SIZES else None)


def _end_of_first_group(pattern: str) -> int | None:
    """The position behind the first capturing group, or None if there is none."""
    opened: list[bool] = []  # of each open parenthesis: whether it captures
    position, in_class = 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            position += pattern.startswith(("]", "^"), position + 1)  # a ] right behind [ is a member of the class
        elif character == "(":
            opened.append(not pattern.startswith("?", position + 1) or pattern.startswith("?P<", position + 1))
        elif character == ")" and opened and opened.pop() and not any(opened):
            return position + 1
        position += 1
    return None

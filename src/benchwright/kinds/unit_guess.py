"""The unit of a metric, guessed from the text that follows the number in its pattern."""

from __future__ import annotations

import re

from benchwright.core.pattern import NUMBER, first_group

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
    pattern = pattern.replace(NUMBER, "(0)")
    group = first_group(pattern)
    match = _FOLLOWS.match(pattern, group[1]) if group is not None else None
    if match is None:
        return None
    percent, word, rate = match.groups()
    if percent:
        return "%"
    if rate:
        return f"{word}/s"
    return _TIMES.get(word.lower()) or (word if word in _SIZES else None)

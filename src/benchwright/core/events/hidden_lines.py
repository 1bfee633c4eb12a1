"""Lines that voir hides in what a program prints: escape sequences which terminals ignore.

With DATA_FD=1 a line of data is written to stdout as `ESC [`, the hexadecimal digits of its UTF-8 with `a` to `f` written as
`: ; < = > ?`, and `z`.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(rb"\x1b\[([0-9:;<=>?]*)z")
_BEGUN = re.compile(rb"\x1b(?:\[[0-9:;<=>?]*)?\Z")  # at the end of a block: the rest may follow in the next
_LONGEST = 1 << 20  # what is longer is no line of data
_DIGITS = bytes.maketrans(b":;<=>?", b"abcdef")


class HiddenLines:
    """Takes output in blocks, cut anywhere, and parts what is to be seen from what is hidden in it."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, block: bytes) -> tuple[bytes, list[bytes]]:
        """What is to be seen of the output so far, and the hidden lines, without their newlines."""
        data = self._held + block
        begun = _BEGUN.search(data, max(0, len(data) - _LONGEST))
        self._held = data[begun.start() :] if begun else b""
        if begun:
            data = data[: begun.start()]
        if b"\x1b" not in data:
            return data, []
        hidden: list[bytes] = []
        for match in _SEQUENCE.finditer(data):
            hidden += _decoded(match[1]).splitlines()
        return _SEQUENCE.sub(b"", data), hidden

    def close(self) -> bytes:
        """What was held back because it might have been the beginning of a hidden line."""
        rest, self._held = self._held, b""
        return rest


def _decoded(digits: bytes) -> bytes:
    try:
        return bytes.fromhex(digits.translate(_DIGITS).decode())
    except ValueError:  # an odd number of digits: torn
        return b"?"

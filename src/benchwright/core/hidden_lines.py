"""Lines of data hidden in a program's output, as escape sequences that terminals ignore.

With DATA_FD=1 an instrument writes a line of data to stdout as `ESC [`, the hexadecimal digits of its UTF-8 with `: ; < = > ?` for
`a` to `f`, and `z`.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(rb"\x1b\[([0-9:;<=>?]*)z")
_BEGUN = re.compile(rb"\x1b(?:\[[0-9:;<=>?]*)?\Z")  # at the end of a block; the next block may hold the rest
_LONGEST = 1 << 20  # anything longer is not a line of data
_DIGITS = bytes.maketrans(b":;<=>?", b"abcdef")


class HiddenLines:
    """Splits output, which comes in blocks cut anywhere, into visible output and hidden lines."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, block: bytes) -> tuple[bytes, list[bytes]]:
        """The visible output so far, and the hidden lines without their newlines."""
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
        """Output held back because a hidden line might have begun there."""
        rest, self._held = self._held, b""
        return rest


def _decoded(digits: bytes) -> bytes:
    try:
        return bytes.fromhex(digits.translate(_DIGITS).decode())
    except ValueError:  # an odd number of digits: cut off
        return b"?"

"""A text file of the user's, read whole, with errors that say where it cannot be."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput

LARGEST_FILE_BYTES = 16 << 20
LONGEST_SHOWN = 300  # characters of a line that is shown below an error
Path = Sequence[Any]  # keys of maps and positions in lists, from the root of a file to a value


class TextPlace(msgspec.Struct, frozen=True):
    """A position in a file; both count from 1."""

    line: int
    column: int


class Remark(msgspec.Struct, frozen=True):
    """Something in a file that is allowed but probably a mistake."""

    what: str
    line: int
    path: tuple[Any, ...] = ()  # the way to it, if known


def appears_twice(key: str, first_line: int) -> str:
    """The warning about a key that a map has twice."""
    return f"'{key}' appears twice, first in line {first_line}; the last one counts"


def read_text(path: str, *, kind: str) -> str:
    """The text of the file at `path`, which is meant to be a `kind` such as "suite file"; it is UTF-8 and not huge."""
    return decode(path, read_bytes(path, kind=kind))


def read_bytes(path: str, *, kind: str) -> bytes:
    """The content of a file that is meant to be a `kind`, and not huge."""
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):
            raise InvalidInput("this is not a file", where=path, remedy=f"name a {kind}")
        if info.st_size > LARGEST_FILE_BYTES:
            raise InvalidInput(
                f"{info.st_size} bytes are too much for a {kind}", where=path, remedy="name another file, or split it"
            )
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InvalidInput(
            f"cannot be read: {error.strerror or error}", where=path, remedy="check the path and its permissions"
        ) from None
    except ValueError:  # a path with a NUL byte
        raise InvalidInput("this is not a path", where=path, remedy=f"name a {kind}") from None


def decode(path: str, content: bytes) -> str:
    """`content` as text without a byte order mark; InvalidInput points at the first byte that is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # With a byte order mark the decoder counts from behind it; `error.object` is what it counts in.
        before, line = error.object[: error.start], error.object.count(b"\n", 0, error.start) + 1
        skipped = len(content) - len(error.object)
        shown = error.object.split(b"\n")[line - 1].rstrip(b"\r")
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "backslashreplace")) + 1
        raise InvalidInput(
            f"byte 0x{error.object[error.start]:02x} at offset {error.start + skipped} is not UTF-8",
            where=path,
            line=line,
            column=column,
            text=shown.decode("utf-8", "backslashreplace") if len(shown) < 300 else None,
            remedy="save the file as UTF-8",
        ) from None

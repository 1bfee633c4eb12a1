"""Reading files of other tools: whatever is wrong with one becomes InvalidInput, with the place.

Only plain files of a limited size are read: a device may never end, a pipe may block for ever, and JSON takes several times
its size in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import format_bytes
from benchwright.core.stored_file import NOT_REGULAR, open_stored

Shape = TypeVar("Shape")
MOST_JSON_BYTES = 128 << 20  # of a document, which is in memory as a whole
MOST_LINES_BYTES = 4 << 30  # of a file that is read line by line
# A lone surrogate cannot be encoded as UTF-8, and not every database stores NUL.
_UNWRITABLE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")


class ForeignFile(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON file, read whole."""

    path: str
    body: Any
    digest: str  # of its bytes
    changed: float  # when it was last written, in seconds since 1970


def open_foreign(path: Path, most_bytes: int) -> BinaryIO:
    """The file, open for reading; InvalidInput if it is not a plain file or larger than that."""
    try:
        file = open_stored(path)
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or str(error)
        remedy = "write it to a file first" if what == NOT_REGULAR else None
        raise InvalidInput(f"cannot be read: {what}", where=str(path), remedy=remedy) from error
    size = os.fstat(file.fileno()).st_size
    if size > most_bytes:
        file.close()
        raise InvalidInput(
            f"has {format_bytes(size)}; result files of up to {format_bytes(most_bytes)} are read",
            where=str(path),
            remedy="export fewer samples, or several files",
        )
    return file


def read_foreign(path: Path) -> bytes:
    """The content of a JSON file; InvalidInput as `open_foreign`. A file that grows meanwhile is read as far as is allowed."""
    with open_foreign(path, MOST_JSON_BYTES) as file:
        return file.read(MOST_JSON_BYTES)


def load(path: Path) -> ForeignFile:
    """Reads the file. NaN and Infinity, which many tools write although they are not JSON, are read as numbers."""
    try:
        found = path.stat()
        return _loaded(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot be read: {what}", where=str(path)) from error


@lru_cache(maxsize=1)  # every importer looks at the file, and one of them reads it
def _loaded(path: Path, _version: tuple[int, ...]) -> ForeignFile:
    where = str(path)
    raw = read_foreign(path)
    changed = path.stat().st_mtime
    return ForeignFile(path=where, body=_decode(raw, where), digest=hashlib.sha256(raw).hexdigest(), changed=changed)


def body_of(path: Path) -> object:
    """The file's content; None if it cannot be read or is not JSON."""
    try:
        return load(path).body
    except InvalidInput:
        return None


def holds(path: Path, **types: type) -> bool:
    """Whether the file is a JSON object with these keys, of these types."""
    body = body_of(path)
    return isinstance(body, dict) and all(isinstance(body.get(key), kind) for key, kind in types.items())


def shaped(value: object, shape: type[Shape], *, where: str, tool: str, at: str = "") -> Shape:
    """`value` as a Struct; InvalidInput names the place in the file that does not fit."""
    try:
        return msgspec.convert(value, shape)
    except (msgspec.ValidationError, OverflowError) as error:
        what = str(error).replace("`$", f"`{at}" if at else "`$")
        raise InvalidInput(
            f"not a file of {tool}: {what[:1].lower()}{what[1:]}",
            where=where,
            remedy=f"export the file again with {tool}",
        ) from error


def _decode(raw: bytes, where: str) -> object:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidInput("this is not UTF-8 text", where=where, line=line, remedy="give a JSON file") from error
    try:
        body = json.loads(text)
        return writable(body) if _UNWRITABLE.search(text) else body
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}",
            where=where,
            line=error.lineno,
            column=error.colno,
            remedy="the file may be truncated; export it again",
        ) from error
    except RecursionError as error:
        raise InvalidInput("the JSON is nested too deeply", where=where, remedy="give a result file") from error
    except ValueError as error:  # a whole number of more than 4,300 digits
        raise InvalidInput(f"a number cannot be read: {error}", where=where, remedy="give a result file") from error


def writable(value: object) -> object:
    """The same with every text made storable."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if isinstance(value, list):
        return [writable(item) for item in value]
    if isinstance(value, dict):
        return {writable(key): writable(item) for key, item in value.items()}
    return value

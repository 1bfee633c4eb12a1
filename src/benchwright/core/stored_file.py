"""Reading files that may have been damaged or edited since they were written.

Only regular files are opened: a pipe may block for ever, and a device may never end.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, BinaryIO, TypeVar, overload

import msgspec

T = TypeVar("T")
NOT_REGULAR = "Not a regular file"


class Unreadable(ValueError):
    """The file's content is invalid; the text says why."""


def open_stored(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open for reading; OSError if there is none, or it is not a regular file."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, NOT_REGULAR, os.fspath(path))
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_stored(path: str | os.PathLike[str]) -> bytes:
    """Its content; raises OSError as `open_stored` does."""
    with open_stored(path) as file:
        return file.read()


@overload
def read_stored_json(path: str | os.PathLike[str]) -> object: ...
@overload
def read_stored_json(path: str | os.PathLike[str], type: type[T]) -> T: ...
def read_stored_json(path: str | os.PathLike[str], type: Any = Any) -> Any:
    """The JSON document in the file as a `type`; OSError if it cannot be opened, Unreadable if it is not one."""
    return decode_stored_json(read_stored(path), type)


@overload
def decode_stored_json(content: bytes) -> object: ...
@overload
def decode_stored_json(content: bytes, type: type[T]) -> T: ...
def decode_stored_json(content: bytes, type: object = Any) -> object:
    """The document as a `type`; Unreadable if it is not one."""
    try:
        return msgspec.json.decode(content, type=type)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8 text ({error.reason})") from None
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise Unreadable(short(str(error))) from None


def short(text: str, most: int = 300) -> str:
    """For messages: the content of a damaged file may be of any length."""
    return text if len(text) <= most else f"{text[:most]}…"

"""Files of a run are as private as its folder, and are not read through links, which may lead out of it."""

from __future__ import annotations

import os

PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600


def file_mode(path: str) -> int:
    """The mode for a new file at `path`, before the umask."""
    try:
        is_private = os.stat(os.path.dirname(path) or ".").st_mode & 0o077 == 0
    except OSError:
        return 0o666
    return _PRIVATE_FILE if is_private else 0o666


def not_through_a_link(path: str, flags: int) -> int:
    """An `opener` for files that others may have replaced: a link is refused with an OSError, a pipe does not block."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def open_to_append(path: str) -> int:
    """A descriptor for a file that others may append to as well; its folder is made if needed. Raises OSError."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, file_mode(path))

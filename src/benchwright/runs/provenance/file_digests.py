"""A short text that changes when a file does."""

from __future__ import annotations

import hashlib
import os
import stat

from benchwright.core.provenance import ABSENT

_MOST_BYTES = 32 << 20  # a larger file is known by its size and time of change


def digest_of(path: str) -> str:
    """Never raises, and opens nothing but plain files."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "no plain file"
        if status.st_size > _MOST_BYTES:
            return f"{status.st_size} bytes, changed at {status.st_mtime_ns}"
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(_MOST_BYTES)).hexdigest()[:32]
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"cannot be read: {error.strerror}"

"""A file's content as a short text that tells whether it changed."""

from __future__ import annotations

import hashlib
import os
import stat

from benchwright.core.results.provenance import ABSENT

_MOST_BYTES = 32 << 20  # of a larger one, size and time of change must do


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

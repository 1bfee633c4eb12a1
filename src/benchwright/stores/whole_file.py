"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from benchwright.domain.errors import CannotMeasure


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes aside, then renames; a full disk leaves what was there before."""
    target = Path(path)
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(aside, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(aside, target)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        raise CannotMeasure(f"{target}: {error.strerror or error}; choose another place") from error

"""A file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchwright.domain.errors import BenchwrightError, InvalidInput


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; renamed to it when all went well, removed when not."""
    target = Path(os.path.realpath(path))  # what a link points to is replaced, not the link
    if target.exists() and not target.is_file():
        raise InvalidInput("this is not a regular file", where=str(path), remedy="give the name of a file")
    aside = target.with_name(f".{target.name[:80]}.{os.getpid()}")
    try:
        yield aside
        with open(aside, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(aside, target)
    except OSError as error:
        raise BenchwrightError(f"{path}: {error.strerror or error}; choose another place") from error
    finally:
        with suppress(OSError):
            aside.unlink()

"""A file that a user named for an export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchwright.core.whole_file import unwritable, written_whole


@contextmanager
def exported_file(path: Path) -> Iterator[str]:
    """The name of a file to fill, which becomes `path` when all went well; see `whole_file` for what that may be."""
    try:
        with written_whole(path) as aside:
            yield aside
    except OSError as error:
        raise unwritable(path, error) from error

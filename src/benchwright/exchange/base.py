"""The importer seam. Entry-point group: `benchwright.importers`; every variant passes one contract test."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from benchwright.core.run import Run

ENTRY_POINT_GROUP = "benchwright.importers"


class Importer(Protocol):
    """Reads the result files of one tool. Reading writes nothing."""

    @property
    def name(self) -> str:
        """Its name for `--from`, and the label `imported_from` of its runs."""
        ...

    def recognises(self, path: Path) -> bool:
        """Whether the file's content is of this kind; never raises."""
        ...

    def read(self, path: Path) -> list[Run]:
        """The runs in the file; none if it has no results. InvalidInput says what is wrong, where, and what to do.

        A run's id is derived from the content, so that reading a file twice gives the same ids. `folder` is the file.
        """
        ...

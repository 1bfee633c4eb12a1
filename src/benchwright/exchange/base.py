"""The importer seam. Entry-point group: `benchwright.importers`; one contract test that every variant passes."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from benchwright.core.run import Run

ENTRY_POINT_GROUP = "benchwright.importers"


class Importer(Protocol):
    """Reads the result files of one tool. Reading writes nothing."""

    @property
    def name(self) -> str:
        """What `--from` calls it, and what the label `imported_from` of its runs says."""
        ...

    def recognises(self, path: Path) -> bool:
        """Whether the file is of this kind, told from its content; never raises."""
        ...

    def read(self, path: Path) -> list[Run]:
        """The runs in the file; none if it holds no result. InvalidInput says where it is wrong and what to do.

        A run's id is derived from the content: the same file read twice gives the same ids. `folder` is the file.
        """
        ...

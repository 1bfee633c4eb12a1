"""The exporter seam: raw samples for another program. Entry-point group: `benchwright.exporters`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from benchwright.core.errors import BrokenPlugin
from benchwright.core.registry import Registry
from benchwright.core.run import Run

ENTRY_POINT_GROUP = "benchwright.exporters"


class Exporter(Protocol):
    """Writes runs in one format."""

    @property
    def suffix(self) -> str | None:
        """Of the file it writes, such as `.csv`; None if it writes a folder or to a server."""
        ...

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        """Writes the runs to `target`, a path or an address; returns what was left out, and why.

        InvalidInput or CannotWrite says why nothing could be written.
        """
        ...


EXPORTERS: Registry[Callable[[], Exporter]] = Registry(ENTRY_POINT_GROUP, "format")


def exporter_for(target: str, name: str | None) -> Exporter | None:
    """The exporter called `name`; without one, that of the file's extension."""
    if name is not None:
        return EXPORTERS.load(name, where="--format")()
    made = (each() for _, each in EXPORTERS.load_all() if not isinstance(each, BrokenPlugin))
    return next((each for each in made if each.suffix is not None and target.endswith(each.suffix)), None)

"""The builds of revisions, as `benchwright cache` lists and removes them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from benchwright.artifacts.holds import unused
from benchwright.artifacts.inventory import LEFTOVER, CacheEntry, entry_of
from benchwright.artifacts.objects import ByteProgress
from benchwright.core.errors import InvalidInput
from benchwright.environments.locks import locked
from benchwright.regress.builds import BuildMarker, clear, read_marker
from benchwright.regress.repository import GitRepository

REVISION = "revision"


class RevisionInventory:
    """Of the folder that `build` and `build_packages` keep them in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> list[CacheEntry]:
        """A build that is being made now, or was given up, is a leftover."""
        places = sorted(place for place in self.folder.glob("*/*") if place.is_dir() and not place.is_symlink())
        return [self._entry(place) for place in places]

    def _entry(self, place: Path) -> CacheEntry:
        marker = read_marker(place)
        if marker is None:
            return entry_of(LEFTOVER, place.name, f"{place.parent.name} {place.name}", place)
        found = entry_of(REVISION, place.name, _name(marker), place, marker.repository)
        return msgspec.structs.replace(found, last_used=os.stat(place).st_mtime)

    def verify(self, entry: CacheEntry, progress: ByteProgress) -> str | None:
        """Only what git knows can be checked: a build may change the tree it is made in."""
        marker = read_marker(Path(entry.path))
        if marker is None or all(os.path.exists(place) for place in marker.built.needed):
            return None
        return f"{entry.path}: files of it are missing; it is built again when it is next needed"

    def remove(self, entry: CacheEntry) -> bool:
        place = Path(entry.path)
        marker = read_marker(place)
        lock = place.with_name(f"{place.name}.lock")
        try:
            with locked(str(lock), stopped=lambda: True), unused(place) as free:
                if not free:
                    return False
                clear(place)
        except InterruptedError:
            return False
        if marker is not None and marker.repository:
            with suppress(InvalidInput):  # the repository has gone too
                GitRepository.open(marker.repository).forget_worktrees()
        return True


def _name(marker: BuildMarker) -> str:
    commit = marker.built.commit
    if commit is None:
        return f"pip:{' '.join(marker.packages)}"
    return f"{os.path.basename(marker.repository)} {commit.short}"

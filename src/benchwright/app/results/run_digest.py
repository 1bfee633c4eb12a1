"""A run's folder as the store needs it: its digest, its entry, its size."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchwright.core.files.stored_file import open_stored
from benchwright.core.run import Run
from benchwright.kinds.registry import kind_of
from benchwright.runs.checksums import CHECKSUMS
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from benchwright.store.base import RunRow, StoreEntry

_PART_OF_A_RUN = (
    ".data",
    "plan.json",
    "jobs.json",
    "run.json",
    "machine.json",
    "packages.json",
    "provenance.json",
    "annotation.json",
    CHECKSUMS,
)


def entry_of(folder: RunFolder, digest: str, run: Run | None = None) -> StoreEntry:
    """The run of a folder, to be put into the store, read unless it is given; InvalidInput if it is no run."""
    from benchwright.store.base import StoreEntry

    return StoreEntry(run=run or read_run(folder, kind_of), digest=digest, annotation=folder.read_annotation())


def imported_digest(run: Run) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(run))).hexdigest()


def folder_of(row: RunRow) -> RunFolder | None:
    """The folder a run was ingested from, if it is still there."""
    folder = RunFolder(Path(row.folder))
    try:
        return folder if folder.id == row.id and (folder.path / "plan.json").is_file() else None
    except (OSError, ValueError):
        return None


def digest_of(folder: RunFolder) -> str:
    """Changes whenever a file that the run is derived from does."""
    digest = hashlib.sha256()
    with os.scandir(folder.path) as entries:
        # Not even opened if it is no file: reading a pipe that somebody put there would wait for ever.
        parts = [
            (entry.name, entry.path)
            for entry in entries
            if entry.name.endswith(_PART_OF_A_RUN) and ".interrupted-" not in entry.name and entry.is_file()
        ]
    for name, path in sorted(parts):
        digest.update(f"{name}\0".encode(errors="surrogateescape"))
        if name.endswith(".json"):
            digest.update(folder.content(name))
            continue
        with open_stored(path) as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def size_of(folder: Path) -> int:
    """Bytes on disk of everything in a run's folder; unreadable files count as 0."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found = os.lstat(os.path.join(place, name))
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total

"""A run's folder as the store needs it: its digest, its entry, its size; and runs that wait until the store takes them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from benchwright.core.columns import as_list
from benchwright.core.errors import InvalidInput, StoreAway, StoreTrouble
from benchwright.core.run import Run
from benchwright.core.stored_file import open_stored, read_stored
from benchwright.core.whole_file import write_own
from benchwright.kinds.registry import kind_of
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.checksums import CHECKSUMS
from benchwright.runs.logs import failure_logs
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder
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
    run = run or read_run(folder, kind_of)
    return StoreEntry(run=run, digest=digest, annotation=folder.read_annotation(), logs=failure_logs(run))


def imported_digest(run: Run) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(run, enc_hook=as_list))).hexdigest()


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


class Taker(Protocol):
    """What can add a run folder to a store."""

    def ingest(self, folder: RunFolder) -> bool: ...

    def close(self) -> None: ...


def remember_unstored(base: BaseFolder, url: str, run: str) -> bool:
    """Leaves a file for the next command, with a digest of the store's URL, which may have a password. False if the run lies
    elsewhere, or nothing can be written."""
    try:
        (base.path / "unstored").mkdir(exist_ok=True)
        write_own(base.path / "unstored" / run, _digest(url))
    except OSError:
        return False
    return (base.runs / run).is_dir()


def is_passing(trouble: StoreTrouble) -> bool:
    """Whether the store may take the same run later: it is locked, full or away, not damaged."""
    return isinstance(trouble, StoreAway) or "benchwright import" in trouble.remedy


def unstored(base: BaseFolder, url: str) -> list[Path]:
    """The files that `remember_unstored` left for the store at `url`, by the name of the run."""
    found = []
    with suppress(OSError):  # there is no such folder, nearly always
        entries = [entry for entry in os.scandir(base.path / "unstored") if entry.is_file(follow_symlinks=False)]
        for path in sorted(Path(entry.path) for entry in entries):
            with suppress(OSError):  # another process has just added that run
                if read_stored(path) == _digest(url):
                    found.append(path)
    return found


def take_unstored(base: BaseFolder, url: str, opened: Callable[[], Taker]) -> None:
    """Adds what is still missing in the store at `url`. Never fails: whoever needs the store will say what is wrong with it."""
    taker: Taker | None = None
    for path in unstored(base, url):
        taker = taker or opened()
        with suppress(OSError):
            with suppress(InvalidInput):  # it was removed or damaged meanwhile: nothing is left to add
                try:
                    taker.ingest(RunFolder(base.runs / path.name))
                except StoreTrouble as trouble:
                    if is_passing(trouble):
                        break  # another time
                    continue  # only this run: it is too large, for instance
            path.unlink()
    if taker is not None:
        taker.close()


def _digest(url: str) -> bytes:
    return hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest().encode() + b"\n"

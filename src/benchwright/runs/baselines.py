"""The names of runs to compare with, in a file of the base folder: the store may be lost, this is the truth."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.files.stored_file import Unreadable, read_stored_json
from benchwright.core.files.whole_file import unwritable, write_own

BASELINES_VERSION = 1


class _Named(msgspec.Struct):
    """`run` is what the run is called, for people; `uid` what tells it apart (`Run.unique_id`)."""

    run: str
    uid: str


class _Document(msgspec.Struct, kw_only=True):
    format: str = "benchwright-baselines"
    version: int = BASELINES_VERSION
    names: dict[str, _Named | str] = {}  # a text: what the run is called, of files that were written by hand or before


class Baselines:
    """`baselines.json` of a base folder. Constructing it touches nothing."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._path = base / "baselines.json"

    def names(self) -> dict[str, str]:
        """Each name and the uid of its run; InvalidInput if the file is damaged or of a newer version."""
        return {name: named if isinstance(named, str) else named.uid for name, named in self._named().items()}

    def _named(self) -> dict[str, _Named | str]:
        where = str(self._path)
        try:
            found = read_stored_json(self._path, _Document)
        except FileNotFoundError:
            return {}
        except (OSError, Unreadable) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InvalidInput(f"cannot be read: {why}", where=where, remedy="repair or remove it") from None
        if found.version > BASELINES_VERSION:
            raise InvalidInput(
                f"has format version {found.version}, this benchwright reads {BASELINES_VERSION}",
                where=where,
                remedy="use the benchwright that wrote it",
            )
        return found.names

    def set(self, name: str, run_id: str, uid: str) -> None:
        """From now on `name` means that run; InvalidInput for a name that nobody could write."""
        if not name.strip() or not name.isprintable():
            raise InvalidInput(f"{name!a} cannot be the name of a baseline", remedy="give it a name, such as main")
        with self._alone():
            self._write({k: v for k, v in self._named().items() if k != name} | {name: _Named(run_id, uid)})

    def remove(self, name: str) -> bool:
        """From now on `name` means no run; whether it meant one."""
        with self._alone():
            named = self._named()
            if name in named:
                self._write({k: v for k, v in named.items() if k != name})
            return name in named

    def forget_run(self, run_id: str, uid: str) -> list[str]:
        """Removes every name of a run that is deleted; which these were."""
        if not (gone := [name for name, other in self.names().items() if other in (run_id, uid)]):
            return []
        with self._alone():
            self._write({name: other for name, other in self._named().items() if name not in gone})
        return gone

    def _write(self, names: dict[str, _Named | str]) -> None:
        try:
            write_own(self._path, msgspec.json.encode(_Document(names=names)) + b"\n")
        except OSError as error:
            raise unwritable(self._path, error) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of several processes that change the file one after the other reads and writes it."""
        self._base.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._base, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network file systems lock no folders
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

"""Names of runs to compare with, in a file of the base folder: the truth, even if the store is lost."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import alone_in, unwritable, write_own

BASELINES_VERSION = 1


class _Named(msgspec.Struct):
    """`run` is the run's id, for people; `uid` identifies it (`Run.unique_id`)."""

    run: str
    uid: str


class _Document(msgspec.Struct, kw_only=True):
    format: str = "benchwright-baselines"
    version: int = BASELINES_VERSION
    names: dict[str, _Named | str] = {}  # a text: the run's id, in files written by hand or by earlier versions


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
        """Makes `name` mean that run; InvalidInput for a name that nobody could type."""
        if not name.strip() or not name.isprintable():
            raise InvalidInput(f"{name!a} cannot be the name of a baseline", remedy="give it a name, such as main")
        with self._alone():
            self._write({k: v for k, v in self._named().items() if k != name} | {name: _Named(run_id, uid)})

    def remove(self, name: str) -> bool:
        """Removes `name`; returns whether it meant a run."""
        with self._alone():
            named = self._named()
            if name in named:
                self._write({k: v for k, v in named.items() if k != name})
            return name in named

    def forget_run(self, run_id: str, uid: str) -> list[str]:
        """Removes and returns every name of a deleted run."""
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

    def _alone(self) -> AbstractContextManager[None]:
        self._base.mkdir(parents=True, exist_ok=True)
        return alone_in(self._base)

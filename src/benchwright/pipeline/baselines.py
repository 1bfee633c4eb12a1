"""The names of runs to compare with, in a file of the base folder: the store may be lost, this is the truth."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from benchwright.domain.errors import InvalidInput
from benchwright.stores.whole_file import write_whole

BASELINES_VERSION = 1


class _Document(msgspec.Struct, kw_only=True):
    format: str = "benchwright-baselines"
    version: int = BASELINES_VERSION
    names: dict[str, str] = {}


class Baselines:
    """`baselines.json` of a base folder. Constructing it touches nothing."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._path = base / "baselines.json"

    def names(self) -> dict[str, str]:
        """Each name and the id of its run; InvalidInput if the file is damaged or of a newer version."""
        where = str(self._path)
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=_Document)
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise InvalidInput(f"not readable: {error}", where=where, remedy="mend or remove it") from None
        if found.version > BASELINES_VERSION:
            raise InvalidInput(
                f"has format version {found.version}, this benchwright reads {BASELINES_VERSION}",
                where=where,
                remedy="use the benchwright that wrote it",
            )
        return found.names

    def set(self, name: str, run_id: str) -> None:
        """From now on `name` means that run; InvalidInput for a name that nobody could write."""
        if not name.strip() or not name.isprintable():
            raise InvalidInput(f"{name!a} cannot be the name of a baseline", remedy="give it a name, such as main")
        with self._alone():
            self._write({k: v for k, v in self.names().items() if k != name} | {name: run_id})

    def remove(self, name: str) -> bool:
        """From now on `name` means no run; whether it meant one."""
        with self._alone():
            names = self.names()
            if name in names:
                self._write({k: v for k, v in names.items() if k != name})
            return name in names

    def forget_run(self, run_id: str) -> None:
        """Removes every name of a run that is deleted."""
        if run_id not in self.names().values():
            return
        with self._alone():
            self._write({name: other for name, other in self.names().items() if other != run_id})

    def _write(self, names: dict[str, str]) -> None:
        write_whole(self._path, msgspec.json.encode(_Document(names=names)) + b"\n")

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

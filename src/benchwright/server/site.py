"""`benchwright site DIR`: the pages as files, for a web server that runs no program, or for none at all."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchwright.core.errors import InvalidInput
from benchwright.core.whole_file import write_whole
from benchwright.server.change_book import ChangeBook
from benchwright.server.pages.frame import Archive, Asked
from benchwright.server.pages.views import ITEM_VIEWS, VIEWS
from benchwright.store.base import RunFilter
from benchwright.store.sql_store import SqlStore

# Which questions become files: all of one of these names.
_ASKED: dict[str, tuple[frozenset[str], ...]] = {
    "/benchmarks": (frozenset({"metric"}), frozenset({"from"}), frozenset({"metric", "from"})),
    "/runs": (frozenset({"from"}), frozenset({"machine"}), frozenset({"machine", "from"})),
    "/compare": (frozenset({"control", "treatment"}),),
    "/changes": (frozenset({"state"}),),
    "/machines/compare": (frozenset({"base"}), frozenset({"metric"})),
}


class _PageKey(NamedTuple):
    path: str
    item: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def file_name(self) -> str:
        name = self.path.strip("/").replace("/", "-") or "index"
        if self.item or self.parameters:
            name += "-" + hashlib.sha256(repr(self[1:]).encode()).hexdigest()[:16]
        return f"{name}.html"


class SiteWriter:
    """Follows the links from the overview on; every page that one leads to becomes a file."""

    def __init__(self, archive: Archive, folder: Path, *, most_runs: int) -> None:
        self._archive = archive
        self._folder = folder
        self._runs = {row.uid for row in archive.store.runs(RunFilter(), limit=most_runs)}
        self._names: dict[_PageKey, str] = {}
        self._waiting: list[_PageKey] = []

    def write(self) -> int:
        """How many pages there are."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._link("/")
        while self._waiting:
            key = self._waiting.pop()
            write_whole(self._folder / self._names[key], self._rendered(key).encode("utf-8", "replace"))
        return len(self._names)

    def _link(self, path: str, /, item: str = "", **parameters: object) -> str:
        given = {name: str(value) for name, value in parameters.items() if value not in (None, "")}
        if not self._is_written(path, item, given):
            return ""
        key = _PageKey(path, item, tuple(sorted(given.items())))
        if key not in self._names:
            self._names[key] = key.file_name
            self._waiting.append(key)
        return self._names[key]

    def _is_written(self, path: str, item: str, given: Mapping[str, str]) -> bool:
        if item:
            return path in ITEM_VIEWS and (path != "/runs/" or item in self._runs)
        if path == "/compare" and not (self._runs >= set(given.values())):
            return False
        plain = not given and path != "/compare"
        return path in VIEWS and (plain or frozenset(given) in _ASKED.get(path, ()))

    def _rendered(self, key: _PageKey) -> str:
        asked = Asked(link=self._link, parameters=dict(key.parameters), path=key.path, forms=False)
        if key.item:
            return ITEM_VIEWS[key.path](self._archive, asked, key.item)
        return VIEWS[key.path](self._archive, asked)


def write_site(store: object, base: Path, folder: Path, *, most_runs: int) -> int:
    """Writes the pages of a store; how many there are. InvalidInput if it cannot be read directly."""
    if not isinstance(store, SqlStore):
        raise InvalidInput(
            "pages are made from the store itself",
            where="--store",
            remedy="run it where the store is, or name the database",
        )
    with tempfile.TemporaryDirectory() as aside:
        # What people said about changes is in the server's file; without one, nothing is written into the base folder.
        book = ChangeBook(base)
        book = book if book.path.exists() else ChangeBook(Path(aside))
        book.examine_all(store)
        return SiteWriter(Archive(store, book, str(base / "runs")), folder, most_runs=most_runs).write()

"""A store in a folder that is made for it: `--store shelf:///home/me/shelf`."""

from __future__ import annotations

from pathlib import Path

from benchwright.core.errors import NoStoreYet
from benchwright.store.base import Aggregate, RunStore
from benchwright.store.sql_store import open_store as open_sql_store


def open_store(
    url: str, *, create: bool = True, aggregate: Aggregate | None = None, patience_s: float | None = None
) -> RunStore:
    """Any object with the methods of `RunStore` will do; this one lets SQLite do the work."""
    folder = Path(url.removeprefix("shelf://"))
    if create:
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        raise NoStoreYet("there is no store yet", where=str(folder), remedy="measure something first")
    return open_sql_store(str(folder / "runs.db"), create=create, aggregate=aggregate, patience_s=patience_s)

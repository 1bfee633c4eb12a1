"""The store made anew. Run folders and imported files are the truth; what only the old store had is carried over."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchwright.domain.errors import (
    BenchwrightError,
    ForeignStore,
    InvalidInput,
    NewerStore,
    NoStoreYet,
    StoreTrouble,
)
from benchwright.pipeline.results import Results, folder_of
from benchwright.stores.known_runs import all_runs

if TYPE_CHECKING:
    from benchwright.stores.base import RunRow, Store

_BESIDE_DATABASE = ("-wal", "-shm", "-journal")


class Rebuilt(msgspec.Struct, frozen=True):
    """A run that was to be put into the store, and why it is not there; without a run, what is to be said of the old store."""

    run: str | None
    problem: str | None = None


class _Old(msgspec.Struct, frozen=True):
    """The store as it was; None if there is none, or (`unreadable`) nothing can be read from it."""

    store: Any
    unreadable: bool = False


def rebuild(results: Results) -> Iterator[Rebuilt]:
    """Makes the store anew.

    A store that is a file is made beside the old one, whatever state that is in, and takes its place at the end; on a
    server every run is ingested again. What is no store of ours, or of a newer version, is ForeignStore and stays.
    An old one that could not be read to its end is kept beside the new one.
    """
    path = _store_file(results.url)
    if path is None:
        yield from fill(results)
        return
    results.close()
    with _room_beside(path) as aside:
        yield from _rebuild_beside(path, aside, results)
    yield from _fill_late(results)


def _rebuild_beside(path: Path, aside: Path, results: Results) -> Iterator[Rebuilt]:
    old = _old_store(path, results)
    keep_old = old.unreadable
    try:
        with Results(results.base, str(aside)) as fresh:
            _ = fresh.store  # made even if there is nothing to put into it
            yield from fill(fresh)
            for outcome in _carried_over(old.store, fresh) if old.store is not None else ():
                keep_old = keep_old or outcome.problem is not None
                yield outcome
        _retire(old, path)
        _take_place(aside, path, keep_old=keep_old)
    finally:
        if old.store is not None:
            old.store.close()
    if keep_old:
        yield Rebuilt(None, f"the old store could not be read to its end; it is kept as {_damaged(path)}")


def fill(results: Results) -> Iterator[Rebuilt]:
    """Ingests every run folder and imported file of the base; what cannot be read is said and left out."""
    for folder in all_runs(results.base.runs):
        try:
            results.ingest(folder)
            yield Rebuilt(folder.id)
        except StoreTrouble:
            raise
        except Exception as error:  # whatever is wrong with one folder, the others are indexed
            yield Rebuilt(folder.id, _in_words(error))
    yield from _fill_imports(results)
    for name, run_id in results.baselines().items():
        if results.store.digest_of(run_id) is not None:
            results.store.set_baseline(name, run_id)


def _fill_imports(results: Results) -> Iterator[Rebuilt]:
    from benchwright.reporters.export import read_export

    for path in results.import_files():
        try:
            for run in read_export(path):
                results.keep(run)
                yield Rebuilt(run.id)
        except InvalidInput as error:
            yield Rebuilt(path.name, str(error))


def _carried_over(old: Store, fresh: Results) -> Iterator[Rebuilt]:
    """Runs that only the old store has: ingested from elsewhere, or whose folder is gone; with their annotations."""
    from benchwright.stores.base import RunFilter

    try:
        rows = old.runs(RunFilter(), limit=None, newest_first=False)
        for row in rows:
            if fresh.store.digest_of(row.id) is None:
                yield _carry(row, old, fresh)
        for name, run_id in old.baselines().items():
            if fresh.store.baseline(name) is None and fresh.store.digest_of(run_id) is not None:
                fresh.store.set_baseline(name, run_id)
    except StoreTrouble as error:
        yield Rebuilt(None, f"the old store {error.what}: what only it had may be missing")


def _carry(row: RunRow, old: Store, fresh: Results) -> Rebuilt:
    elsewhere = folder_of(row)
    try:
        if elsewhere is not None:
            fresh.ingest(elsewhere)
        else:
            fresh.store.ingest(old.load(row.id), digest=old.digest_of(row.id) or "")
        if row.annotation is not None and (elsewhere is None or elsewhere.read_annotation() is None):
            fresh.store.annotate(row.id, row.annotation)
    except Exception as error:  # as above; the old store is kept then
        return Rebuilt(row.id, _in_words(error))
    return Rebuilt(row.id)


def _in_words(error: Exception) -> str:
    if isinstance(error, BenchwrightError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    return f"{type(error).__name__}: {error}"


def _fill_late(results: Results) -> Iterator[Rebuilt]:
    """Runs that ended, and were put into the old store, while the new one was made."""
    for folder in all_runs(results.base.runs):
        try:
            if results.store.digest_of(folder.id) is None and results.ingest(folder):
                yield Rebuilt(folder.id)
        except StoreTrouble:
            raise
        except Exception:  # noqa: S112 - said before
            continue


def _old_store(path: Path, results: Results) -> _Old:
    from benchwright.stores.base import open_store

    try:
        return _Old(_current(open_store(str(path), create=False)))
    except NoStoreYet:
        return _Old(None)
    except ForeignStore as error:
        # The base's own store.db is ours whatever is in it, unless a newer benchwright wrote it.
        if isinstance(error, NewerStore) or path.resolve() != (results.base.path / "store.db").resolve():
            raise
        return _Old(None, unreadable=True)
    except StoreTrouble:
        return _Old(None, unreadable=True)


def _current(store: Store) -> Store:
    """The same store, brought to this version if it is older."""
    from benchwright.stores.base import RunFilter

    try:
        store.runs(RunFilter(), limit=1)
    except StoreTrouble:
        try:
            store.migrate()
        except BaseException:
            store.close()
            raise
    return store


def _retire(old: _Old, path: Path) -> None:
    from benchwright.stores.connecting import retire_file

    if old.store is not None:
        old.store.close()
        retire_file(path)


def _take_place(aside: Path, path: Path, *, keep_old: bool) -> None:
    # Journals too: that of the old file would be played back into the new one.
    for suffix in ("", *_BESIDE_DATABASE):
        old = path.with_name(path.name + suffix)
        if keep_old and old.exists():
            os.replace(old, f"{_damaged(path)}{suffix}")
        elif suffix:
            old.unlink(missing_ok=True)
    os.replace(aside, path)


def _damaged(path: Path) -> Path:
    return path.with_name(f"{path.name}.damaged")


def _store_file(url: str) -> Path | None:
    """The store's file, or None if it is on a server."""
    scheme = url.partition("://")[0].partition("+")[0].lower() if "://" in url else "sqlite"
    if scheme != "sqlite":
        return None
    from benchwright.stores.connecting import read_url

    return read_url(url).path


@contextmanager
def _room_beside(path: Path) -> Iterator[Path]:
    """An empty file, for this process alone, in which the new store is made; StoreTrouble if another one is at it."""
    aside = path.with_name(f"{path.name}.rebuilding")
    aside.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(aside, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreTrouble("is being rebuilt already", where=str(path), remedy="wait for that") from None
        os.ftruncate(handle, 0)  # what a killed one left
        for suffix in _BESIDE_DATABASE:
            aside.with_name(aside.name + suffix).unlink(missing_ok=True)
        try:
            yield aside
        except BaseException:
            _remove_database(aside)
            raise
    finally:
        os.close(handle)


def _remove_database(path: Path) -> None:
    for suffix in ("", *_BESIDE_DATABASE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)

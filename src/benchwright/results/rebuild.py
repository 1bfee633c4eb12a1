"""The store made anew. Run folders and imported files are the truth; what only the old store had is carried over."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.errors import (
    BenchwrightError,
    ForeignStore,
    InvalidInput,
    NewerStore,
    NoStoreYet,
    StoreTrouble,
)
from benchwright.core.file_lock import try_lock
from benchwright.core.run import Run
from benchwright.report.export import read_export
from benchwright.results.kept_runs import Results
from benchwright.results.run_digest import digest_of, entry_of, folder_of, imported_digest
from benchwright.runs.known_runs import all_runs, by_start
from benchwright.runs.run_folder import RunFolder
from benchwright.store.base import RunFilter, RunRow, RunStore, StoreEntry, open_store
from benchwright.store.connection import read_url, retire_file
from benchwright.store.schema import VERSION

_BESIDE_DATABASE = ("-wal", "-shm", "-journal")
_RUNS_AT_ONCE = 200
_BYTES_AT_ONCE = 32 << 20


class Rebuilt(msgspec.Struct, frozen=True):
    """A run that could not be put into the store, and why; without a run, a remark about the old store."""

    run: str | None
    problem: str | None = None


class _Old(msgspec.Struct, frozen=True):
    """The store as it was; None if there is none, or (`unreadable`) nothing can be read from it."""

    store: Any
    unreadable: bool = False


def rebuild(results: Results) -> Iterator[Rebuilt]:
    """Makes the store anew, whatever state the old one is in.

    A store that is a file is made beside the old one and takes its place at the end; on a server every run is ingested
    again. What is no store of ours, or of a newer version, is ForeignStore and stays. An old one that could not be read to
    its end is kept beside the new one.
    """
    path = _store_file(results.url)
    if path is None:
        yield from fill(results, replace=True)
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
        keep_old = not _retired(old, path) or keep_old
        kept = _take_place(aside, path, keep_old=keep_old)
    finally:
        if old.store is not None:
            old.store.close()
    if kept is not None:
        yield Rebuilt(None, f"the old store could not be read to its end; it is kept as {kept}")


def fill(results: Results, *, replace: bool = False) -> Iterator[Rebuilt]:
    """Ingests every run folder and imported file of the base; what cannot be read is said and left out.

    `replace`: also what the store has already, unchanged.
    """
    yield from _put(results, _entries_of_folders(results), replace=replace)
    yield from _put(results, _entries_of_imports(results), replace=replace)
    try:
        names = results.own_baselines.names()
    except InvalidInput as error:
        yield Rebuilt(None, f"{error}; no baseline was taken over")
        return
    known = {uid for each in results.store.standing() for uid in (each.uid, each.called)}
    for name, uid in names.items():
        if uid in known:
            results.store.set_baseline(name, uid)


def _entries_of_folders(results: Results) -> Iterator[StoreEntry | Rebuilt]:
    for folder in all_runs(results.base.runs):
        try:
            yield _entry(folder)
        except Exception as error:  # whatever is wrong with one folder, the others are indexed
            yield Rebuilt(folder.id, _in_words(error))


def _entry(folder: RunFolder) -> StoreEntry:
    folder = folder.read_once()
    return entry_of(folder, digest_of(folder))


def _entries_of_imports(results: Results) -> Iterator[StoreEntry | Rebuilt]:
    for path in results.import_files():
        try:
            for run in read_export(path):
                annotation = results.beside_import(run.id).read_annotation()
                yield StoreEntry(run=run, digest=imported_digest(run), annotation=annotation)
        except Exception as error:  # as above
            yield Rebuilt(path.name, _in_words(error))


def _put(results: Results, found: Iterable[StoreEntry | Rebuilt], *, replace: bool) -> Iterator[Rebuilt]:
    """Puts the runs into the store, many at once."""
    known = {each.uid: each.folder for each in results.store.standing()}
    batch: list[StoreEntry] = []
    size = 0
    for each in found:
        if isinstance(each, Rebuilt):
            yield each
            continue
        uid, folder = each.run.unique_id, each.run.folder
        if known.get(uid, folder) != folder:
            yield from _ingested(results, batch, replace=replace)  # the other one may be among them
            batch, size = [], 0
            try:
                results.refuse_another(each)
            except InvalidInput as error:
                yield Rebuilt(each.run.id, str(error))
                continue
        known[uid] = folder
        batch.append(each)
        size += _bytes_of(each.run)
        if len(batch) >= _RUNS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield from _ingested(results, batch, replace=replace)
            batch, size = [], 0
    yield from _ingested(results, batch, replace=replace)


def _bytes_of(run: Run) -> int:
    measurements = (m for r in run.results for x in r.launches for m in x.measurements)
    return sum(8 * (len(m.samples) + len(m.warmup_samples)) for m in measurements)


def _ingested(results: Results, batch: Sequence[StoreEntry], *, replace: bool) -> Iterator[Rebuilt]:
    """All of them at once; if that cannot be, one by one, so that a run that the database does not take costs no other."""
    if not batch:
        return
    try:
        results.store.ingest_all(batch, replace=replace)
        yield from (Rebuilt(entry.run.id) for entry in batch)
        return
    except StoreTrouble as error:
        together = error
    failed = 0
    for entry in batch:
        try:
            results.store.ingest_all([entry], replace=replace)
            yield Rebuilt(entry.run.id)
        except StoreTrouble as error:
            failed += 1
            yield Rebuilt(entry.run.id, str(error))
    if failed == len(batch):
        raise together  # it is the store


def _carried_over(old: RunStore, fresh: Results) -> Iterator[Rebuilt]:
    """Runs that only the old store has: ingested from elsewhere, or whose folder is gone; with their annotations."""
    try:
        there = fresh.store.digests()
        rows = [row for row in old.runs(RunFilter(), limit=None, newest_first=False) if row.uid not in there]
        yield from _put(fresh, (_carried(row, old) for row in rows), replace=False)
        there = fresh.store.digests()
        for name, uid in old.baselines().items():
            if fresh.store.baseline(name) is None and uid in there:
                fresh.store.set_baseline(name, uid)
    except Exception as error:  # it may be in any state
        what = error.what if isinstance(error, StoreTrouble) else _in_words(error)
        yield Rebuilt(None, f"the old store {what}: what only it had may be missing")


def _carried(row: RunRow, old: RunStore) -> StoreEntry | Rebuilt:
    try:
        elsewhere = folder_of(row)
        if elsewhere is not None:
            entry = _entry(elsewhere)
            return entry if entry.annotation is not None else msgspec.structs.replace(entry, annotation=row.annotation)
        digest = old.digest_of(row.uid) or ""
        return StoreEntry(run=old.load(row.uid), digest=digest, annotation=row.annotation, logs=old.logs(row.uid))
    except Exception as error:  # as above; the old store is kept then
        return Rebuilt(row.id, _in_words(error))


def _in_words(error: Exception) -> str:
    if isinstance(error, BenchwrightError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    return f"{type(error).__name__}: {error}"


def _fill_late(results: Results) -> Iterator[Rebuilt]:
    """Runs that ended, and were put into the old store, while the new one was made."""
    standing = results.store.standing()
    folders, uids = {each.folder for each in standing}, {each.uid for each in standing}
    for folder in by_start(results.base.runs, lambda path: str(path) not in folders):
        try:
            if folder.unique_id not in uids and results.ingest(folder):
                yield Rebuilt(folder.id)
        except StoreTrouble:
            raise
        except Exception:  # noqa: S112 - said before
            continue


def _old_store(path: Path, results: Results) -> _Old:
    try:
        store = open_store(str(path), create=False)
    except NoStoreYet:
        return _Old(None)
    except ForeignStore as error:
        # The base's own store.db is ours whatever is in it, unless a newer benchwright wrote it.
        if isinstance(error, NewerStore) or path.resolve() != (results.base.path / "store.db").resolve():
            raise
        return _Old(None, unreadable=True)
    except Exception:  # damage can lead to anything
        return _Old(None, unreadable=True)
    try:
        if store.schema_version() != VERSION:
            store.migrate()
    except Exception:  # as above
        store.close()
        return _Old(None, unreadable=True)
    return _Old(store)


def _retired(old: _Old, path: Path) -> bool:
    """Makes the old file ready to be replaced; False if it is too damaged for that."""
    if old.store is None:
        return True
    old.store.close()
    try:
        retire_file(path)
    except sqlite3.Error:
        return False
    return True


def _take_place(aside: Path, path: Path, *, keep_old: bool) -> Path | None:
    """Where the old one is kept."""
    # Journals too: that of the old file would be played back into the new one.
    kept = _free_name(path) if keep_old and os.path.lexists(path) else None
    for suffix in ("", *_BESIDE_DATABASE):
        old = path.with_name(path.name + suffix)
        if kept is not None and os.path.lexists(old):
            os.replace(old, f"{kept}{suffix}")
        elif suffix:
            old.unlink(missing_ok=True)
    os.replace(aside, path)
    return kept


def _free_name(path: Path) -> Path:
    """store.db.damaged; the next one is store.db.damaged-2."""
    names = (path.with_name(f"{path.name}.damaged{'' if n == 1 else f'-{n}'}") for n in itertools.count(1))
    return next(name for name in names if not os.path.lexists(name))


def _store_file(url: str) -> Path | None:
    """The store's file, or None if it is on a server."""
    scheme = url.partition("://")[0].partition("+")[0].lower() if "://" in url else "sqlite"
    if scheme != "sqlite":
        return None

    return read_url(url).path


@contextmanager
def _room_beside(path: Path) -> Iterator[Path]:
    """An empty file, for this process alone, in which the new store is made; StoreTrouble if another one is at it."""
    aside = path.with_name(f"{path.name}.rebuilding")
    aside.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(aside, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not try_lock(handle):
            raise StoreTrouble("is being rebuilt already", where=str(path), remedy="wait for that")
        os.ftruncate(handle, 0)  # what a killed one left
        for suffix in _BESIDE_DATABASE:
            aside.with_name(aside.name + suffix).unlink(missing_ok=True)
        try:
            yield aside
        except BaseException:
            for suffix in ("", *_BESIDE_DATABASE):
                aside.with_name(aside.name + suffix).unlink(missing_ok=True)
            raise
    finally:
        os.close(handle)

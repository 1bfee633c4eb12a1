"""Deletes, prunes and annotates runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput, NoStoreYet, RunFolderBusy, StoreTrouble
from benchwright.core.secrets import redact_text
from benchwright.plan.file_names import safe_name
from benchwright.results.kept_runs import FoundRun, Results
from benchwright.results.run_digest import size_of
from benchwright.runs.known_runs import all_runs
from benchwright.runs.run_folder import DiskTrouble, RunFolder
from benchwright.store.base import RunFilter
from benchwright.store.run_query import started_s

_DELETED = ".deleted-"


class Deleted(msgspec.Struct, frozen=True):
    """`baselines`: those deleted with it. `trouble`: why the store or a baseline still lists it."""

    freed_bytes: int
    baselines: tuple[str, ...] = ()
    trouble: str | None = None


def names_of(results: Results, words: Sequence[str]) -> list[FoundRun]:
    """The runs to delete, each once; InvalidInput for an unknown one, one of another base, or an ambiguous name."""
    meant: dict[str, FoundRun] = {}
    for word in words:
        found = results.find(word)
        if found.folder is not None and found.folder.path.parent.resolve() != results.base.runs.resolve():
            raise InvalidInput(
                f"{found.folder.path} is not in {results.base.runs}",
                remedy="give its base with --base, or delete it yourself",
            )
        if word not in ("last", found.id, found.uid):
            _refuse_ambiguous(results, word)
        meant[found.uid if found.folder is None else str(found.folder.path)] = found
    return list(meant.values())


def _refuse_ambiguous(results: Results, word: str) -> None:
    """InvalidInput if `word` is the beginning of several names."""
    try:
        stored = results.only_in_store(word)
    except StoreTrouble:
        stored = []
    known = {f.unique_id: f.id for f in all_runs(results.base.runs) if f.id.startswith((word, safe_name(word)))}
    known |= {row.uid: row.id for row in stored}
    if len(known) > 1:
        some = ", ".join(list(known.values())[:3]) + ("…" if len(known) > 3 else "")
        raise InvalidInput(f"'{word}' matches {len(known)} runs ({some})", remedy="give the full name of one")


def delete_run(results: Results, run: FoundRun) -> Deleted:
    """Deletes the folder or imported file, then the baselines that name it and the entry in the store.

    RunFolderBusy for a run that is being made. A store that cannot be written keeps nothing else from being deleted; StoreTrouble
    if there is nothing else.
    """
    only_stored = run.folder is None and not results.import_file(run.id).exists()
    freed = _delete_folder(results.base.runs, run.id) if run.folder is not None else _delete_import(results, run.id)
    names, trouble = [], None
    try:
        names = [name for name, uid in results.existing_store.baselines().items() if uid == run.uid]
        results.existing_store.delete(run.uid)
    except NoStoreYet:
        pass
    except StoreTrouble as error:
        if only_stored:
            raise
        trouble = f"{error.where}: {error.what}"
    try:
        names += results.own_baselines.forget_run(run.id, run.uid)
    except InvalidInput as error:
        trouble = str(error)
    return Deleted(freed, tuple(dict.fromkeys(names)), trouble)


def _delete_folder(runs: Path, name: str) -> int:
    for left in runs.glob(f"{_DELETED}*"):  # by a deletion that was interrupted
        shutil.rmtree(left, ignore_errors=True)
    path = runs / name
    if path.is_symlink():
        path.unlink()  # its target belongs to somebody else
        return 0
    if path.parent != runs or not path.is_dir():
        return 0
    if RunFolder(path).is_being_made():
        raise RunFolderBusy(f"another benchwright is writing {name}; wait for it")
    freed = size_of(path)
    # Renamed first: a deletion that is interrupted leaves nothing that looks like a run.
    gone = path.with_name(f"{_DELETED}{name}")
    path.rename(gone)
    shutil.rmtree(gone)
    return freed


def _delete_import(results: Results, name: str) -> int:
    path, beside = results.import_file(name), results.beside_import(name).path
    freed = path.stat().st_size if path.exists() else 0
    path.unlink(missing_ok=True)
    if beside.is_dir():
        shutil.rmtree(beside)
    return freed


def to_prune(
    results: Results, *, keep_s: float | None, max_bytes: int | None, of_store: bool = False
) -> list[FoundRun]:
    """The runs to delete, oldest first; never baselines or running ones. `of_store`: also old ones that only the store has."""
    protected = set(results.baselines().values())
    oldest_first = all_runs(results.base.runs)[::-1]
    folders = [f for f in oldest_first if not {f.id, f.unique_id} & protected and not f.is_being_made()]
    chosen: set[Path] = set()
    if keep_s is not None:
        chosen |= {f.path for f in folders if _age_s(f) > keep_s}
    if max_bytes is not None:
        total = sum(size_of(f.path) for f in oldest_first if f.path not in chosen)
        for folder in folders:
            if total <= max_bytes:
                break
            if folder.path not in chosen:
                chosen.add(folder.path)
                total -= size_of(folder.path)
    stored = _old_in_store(results, keep_s, protected) if of_store and keep_s is not None else []
    return [*stored, *(FoundRun(f.id, f.unique_id, f) for f in folders if f.path in chosen)]


def _old_in_store(results: Results, keep_s: float, protected: set[str]) -> list[FoundRun]:
    """Runs of other machines; one of unknown age is kept."""
    here = protected | {folder.unique_id for folder in all_runs(results.base.runs)}
    end = datetime.fromtimestamp(max(0.0, time.time() - keep_s)).astimezone().isoformat()
    rows = results.existing_store.runs(RunFilter(until=end), limit=None, newest_first=False)
    return [
        FoundRun(row.id, row.uid, None)
        for row in rows
        if row.uid not in here and started_s(row.started) and not results.import_file(row.id).exists()
    ]


def annotate_run(results: Results, word: str, text: str | None) -> str:
    """Keeps `text` with the run, in its folder (or beside its imported file) and in the store; returns its name."""
    found = results.find(word)
    text = None if text is None else redact_text(text)
    if found.folder is not None:
        found.folder.write_annotation(text)
        results.ingest(found.folder)
    elif results.import_file(found.id).exists():
        beside = results.beside_import(found.id)
        beside.path.mkdir(exist_ok=True)
        beside.write_annotation(text)
    elif (elsewhere := results.elsewhere(found.uid)) is not None:
        _annotate_elsewhere(results, elsewhere, text)
    results.store.annotate(found.uid, text)
    return found.id


def _annotate_elsewhere(results: Results, folder: RunFolder, text: str | None) -> None:
    try:
        folder.write_annotation(text)
        results.ingest(folder)
    except (DiskTrouble, OSError):
        return  # it may be somebody else's: then only the store gets the annotation


def _age_s(folder: RunFolder) -> float:
    try:
        started = datetime.fromisoformat(folder.read_plan().started)
    except (InvalidInput, ValueError):
        return 0.0  # a run of unknown age is kept
    return time.time() - started.timestamp()

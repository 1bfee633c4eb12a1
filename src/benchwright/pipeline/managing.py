"""Looking after the runs that were kept: listing, deleting, pruning, annotating."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchwright.domain.errors import InvalidInput, NoStoreYet, RunFolderBusy, StoreTrouble
from benchwright.domain.status import Status
from benchwright.pipeline.rebuilding import Rebuilt, fill
from benchwright.pipeline.results import Results, size_of
from benchwright.planning.stems import safe_name
from benchwright.stores.known_runs import all_runs
from benchwright.stores.run_folder import DiskTrouble, RunFolder

if TYPE_CHECKING:
    from benchwright.stores.base import RunRow

_DELETED = ".deleted-"


class Listed(msgspec.Struct, frozen=True):
    """Rows of the store; `problems`: runs that could not be put into it when it was filled."""

    rows: list[Any]
    problems: tuple[Rebuilt, ...] = ()


class Deleted(msgspec.Struct, frozen=True):
    """`trouble`: why the store still lists it."""

    freed_bytes: int
    trouble: str | None = None


def list_runs(results: Results, *, limit: int, status: str | None = None, **wanted: Any) -> Listed:
    """Rows of the store. A store that was never filled is filled first: it is only an index."""
    from benchwright.stores.base import RunFilter

    where = RunFilter(status=Status(status) if status else None, **wanted)
    found: list[RunRow] = []
    try:
        found = results.existing_store.runs(where, limit=limit)
        if found or results.existing_store.runs(RunFilter(), limit=1):
            return Listed(found)
    except NoStoreYet:
        pass
    if not all_runs(results.base.runs) and not results.import_files():
        return Listed([])
    problems = tuple(outcome for outcome in fill(results) if outcome.problem is not None)
    return Listed(results.store.runs(where, limit=limit), problems)


def names_of(results: Results, words: Sequence[str]) -> list[str]:
    """The runs that are meant, each once; InvalidInput if one is not there, not of this base, or only perhaps meant."""
    names = []
    for word in words:
        name, folder = results.find(word)
        if folder is not None and folder.path.parent.resolve() != results.base.runs.resolve():
            raise InvalidInput(
                f"{folder.path} is not in {results.base.runs}",
                remedy="name its base with --base, or remove it yourself",
            )
        if word not in ("last", name):
            _refuse_ambiguous(results, word)
        names.append(name)
    return list(dict.fromkeys(names))


def _refuse_ambiguous(results: Results, word: str) -> None:
    """InvalidInput if `word` is the beginning of several runs: what is deleted must be named."""
    try:
        stored = results.only_in_store(word)
    except StoreTrouble:
        stored = []
    known = [f.id for f in all_runs(results.base.runs)] + stored
    meant = list(dict.fromkeys(i for i in known if i in stored or i.startswith((word, safe_name(word)))))
    if len(meant) > 1:
        some = ", ".join(meant[:3]) + ("…" if len(meant) > 3 else "")
        raise InvalidInput(f"'{word}' is the beginning of {len(meant)} runs ({some})", remedy="name one of them whole")


def delete_run(results: Results, name: str) -> Deleted:
    """Deletes the folder or imported file, then the baselines that name it and the entry in the store.

    RunFolderBusy for a run that is being made. A store that cannot be written keeps nothing else from being deleted.
    """
    freed = _delete_folder(results.base.runs, name) + _delete_import(results, name)
    results.own_baselines.forget_run(name)
    try:
        results.existing_store.delete(name)
    except NoStoreYet:
        pass
    except StoreTrouble as error:
        return Deleted(freed, f"{error.where}: {error.what}")
    return Deleted(freed)


def _delete_folder(runs: Path, name: str) -> int:
    for left in runs.glob(f"{_DELETED}*"):  # by a deletion that was interrupted
        shutil.rmtree(left, ignore_errors=True)
    path = runs / name
    if path.is_symlink():
        path.unlink()  # what it leads to is not of this base
        return 0
    if path.parent != runs or not path.is_dir():
        return 0
    if RunFolder(path).is_being_made():
        raise RunFolderBusy(f"{name} is being written by another benchwright; wait for it")
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


def to_prune(results: Results, *, keep_s: float | None, max_bytes: int | None) -> list[str]:
    """Names of runs that may go, oldest first. Baselines and runs that are being made stay."""
    protected = set(results.baselines().values())
    folders = [f for f in all_runs(results.base.runs) if f.id not in protected and not f.is_being_made()]
    chosen: list[str] = []
    if keep_s is not None:
        chosen += [f.id for f in folders if _age_s(f) > keep_s]
    if max_bytes is not None:
        total = sum(size_of(f.path) for f in all_runs(results.base.runs) if f.id not in chosen)
        for folder in reversed(folders):  # they come newest first
            if total <= max_bytes:
                break
            if folder.id not in chosen:
                chosen.append(folder.id)
                total -= size_of(folder.path)
    return sorted(chosen, key=[f.id for f in reversed(folders)].index)


def annotate_run(results: Results, word: str, text: str | None) -> str:
    """Keeps `text` with the run, in its folder (or beside its imported file) and in the store; returns its name."""
    name, folder = results.find(word)
    if folder is not None:
        folder.write_annotation(text)
        results.ingest(folder)
    elif results.import_file(name).exists():
        beside = results.beside_import(name)
        beside.path.mkdir(exist_ok=True)
        beside.write_annotation(text)
    elif (elsewhere := results.elsewhere(name)) is not None:
        _annotate_elsewhere(results, elsewhere, text)
    results.store.annotate(name, text)
    return name


def _annotate_elsewhere(results: Results, folder: RunFolder, text: str | None) -> None:
    try:
        folder.write_annotation(text)
        results.ingest(folder)
    except (DiskTrouble, OSError):
        return  # it may be somebody else's: then only the store has it


def _age_s(folder: RunFolder) -> float:
    try:
        started = datetime.fromisoformat(folder.read_plan().started)
    except (InvalidInput, ValueError):
        return 0.0  # a run whose age cannot be told stays
    return time.time() - started.timestamp()

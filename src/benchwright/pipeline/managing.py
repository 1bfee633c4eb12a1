"""Looking after the runs that were kept: listing, deleting, pruning, annotating."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from benchwright.domain.errors import InvalidInput, RunFolderBusy
from benchwright.domain.status import Status
from benchwright.pipeline.results import Results, size_of
from benchwright.planning.stems import safe_name
from benchwright.stores.run_folder import RunFolder, all_runs

if TYPE_CHECKING:
    from benchwright.stores.base import RunRow


def list_runs(results: Results, *, limit: int, status: str | None = None, **wanted: Any) -> list[RunRow]:
    """Rows of the store. A store that was never filled is filled first: it is only an index."""
    from benchwright.stores.base import RunFilter

    where = RunFilter(status=Status(status) if status else None, **wanted)
    found = results.store.runs(where, limit=limit)
    if not found and not results.store.runs(RunFilter(), limit=1):
        for _ in results.fill():
            pass
        found = results.store.runs(where, limit=limit)
    return found


def names_of(results: Results, words: Sequence[str]) -> list[str]:
    """The runs that are meant, each once; InvalidInput if one is not there, not of this base, or only perhaps meant."""
    names = []
    for word in words:
        name, folder = results.find(word)
        if folder is not None and folder.path.parent != results.base.runs.resolve():
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
    known = [f.id for f in all_runs(results.base.runs)] + results.only_in_store(word)
    meant = list(dict.fromkeys(i for i in known if i.startswith((word, safe_name(word)))))
    if len(meant) > 1:
        some = ", ".join(meant[:3]) + ("…" if len(meant) > 3 else "")
        raise InvalidInput(f"'{word}' is the beginning of {len(meant)} runs ({some})", remedy="name one of them whole")


def delete_run(results: Results, name: str) -> int:
    """Deletes the folder or imported file, then the entry in the store and the baselines that name it.

    Returns the bytes freed. RunFolderBusy for a run that is being made.
    """
    folder = RunFolder(results.base.runs / name)
    freed = 0
    if folder.path.is_dir():
        if folder.is_busy():
            raise RunFolderBusy(f"{name} is being written by another benchwright; wait for it")
        freed = size_of(folder.path)
        # Renamed first: a deletion that is interrupted leaves nothing that looks like a run.
        gone = folder.path.with_name(f".deleted-{name}")
        folder.path.rename(gone)
        shutil.rmtree(gone)
    freed += _delete_import(results, name)
    results.forget_baselines(name)
    results.store.delete(name)
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
    folders = [f for f in all_runs(results.base.runs) if f.id not in protected and not f.is_busy()]
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
    results.store.annotate(name, text)
    return name


def _age_s(folder: RunFolder) -> float:
    try:
        started = datetime.fromisoformat(folder.read_plan().started)
    except (InvalidInput, ValueError):
        return 0.0  # a run whose age cannot be told stays
    return time.time() - started.timestamp()

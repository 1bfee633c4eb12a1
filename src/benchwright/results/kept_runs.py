"""The runs of a base folder and its store: found by name, stored, loaded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchwright.core.aggregates import aggregate
from benchwright.core.errors import (
    BenchwrightError,
    ForeignStore,
    InvalidInput,
    NoStoreYet,
    StoreGone,
    StoreTrouble,
    did_you_mean,
)
from benchwright.core.note import Note
from benchwright.core.redacted import run_without_secrets
from benchwright.core.run import Run
from benchwright.core.secrets import redact_text
from benchwright.kinds.registry import kind_of
from benchwright.plan.file_names import safe_name
from benchwright.report.export import export_json
from benchwright.results.adhoc_import import foreign_runs, refuse_several
from benchwright.results.run_digest import digest_of, entry_of, folder_of, imported_digest, take_unstored
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.baselines import Baselines
from benchwright.runs.known_runs import PART_OF_UID, all_runs, find_run, named_so
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder
from benchwright.store.base import RunFilter, check_address, open_store

if TYPE_CHECKING:
    from benchwright.store.base import RunRow, RunStore, StoreEntry


def store_url(given: str | None, base: BaseFolder, environment: Mapping[str, str]) -> str:
    """`--store`, else $BENCHWRIGHT_STORE, else the SQLite file of the base folder; InvalidInput if it names no store."""
    for url, where in ((given, "--store"), (environment.get("BENCHWRIGHT_STORE"), "$BENCHWRIGHT_STORE")):
        if url:
            check_address(url, where)
            return url
    return str(base.path / "store.db")


class FoundRun(msgspec.Struct, frozen=True):
    """A run found by name. `folder` is None if only the store has it."""

    id: str
    uid: str
    folder: RunFolder | None


class Results:
    """The runs of one base folder and the store that indexes them. The store is opened when it is first needed."""

    def __init__(self, base: BaseFolder, url: str, *, patience_s: float | None = None) -> None:
        """`patience_s`: how long to wait for a store that others have locked."""
        self.base = base
        self.url = url
        self.patience_s = patience_s
        self.own_baselines = Baselines(base.path)
        self._store: RunStore | None = None

    @staticmethod
    def choose(
        base: str | os.PathLike[str] | None,
        store: str | None,
        environment: Mapping[str, str],
        *,
        patience_s: float | None = None,
    ) -> Results:
        folder = BaseFolder.choose(base, environment)
        return Results(folder, store_url(store, folder, environment), patience_s=patience_s)

    @property
    def where(self) -> str:
        """The store's URL for messages: without the password."""
        return redact_text(self.url)

    @property
    def store(self) -> RunStore:
        """The store, created if there is none."""
        return self._opened(create=True)

    @property
    def existing_store(self) -> RunStore:
        """The same, but NoStoreYet if there is none: reading creates nothing."""
        return self._opened(create=False)

    def _opened(self, *, create: bool) -> RunStore:
        if self._store is None:
            try:
                self._store = open_store(self.url, create=create, aggregate=aggregate, patience_s=self.patience_s)
            except InvalidInput as error:
                if self.url != self._own_url:
                    raise
                # The default store: another URL is no remedy, something else is in its place.
                remedy = "move it away, then rebuild the store from the run folders: benchwright store rebuild"
                raise ForeignStore(error.what, where=self.url, remedy=remedy) from None
        return self._store

    @property
    def _own_url(self) -> str:
        """Of the store that the base folder has if no other is named."""
        return str(self.base.path / "store.db")

    def run(self, word: str) -> Run:
        """The run that `word` names: `last`, a folder, its name or the beginning of it, `baseline:NAME`, an id in the store, or
        the path of another tool's results."""
        return refuse_several(word, self._runs(word))

    def _runs(self, word: str) -> list[Run]:
        """More than one only of another tool's results."""
        if word.startswith("baseline:"):
            return self._runs(self.baseline(word.removeprefix("baseline:")))
        try:
            found = self.find(word)
        except InvalidInput:
            if foreign := foreign_runs(word):
                return foreign
            raise
        if found.folder is None:
            return [self.existing_store.load(found.uid)]
        try:
            return [read_run(found.folder, kind_of)]
        except InvalidInput as error:
            return [self._as_stored(found.uid, error)]

    def each(self, words: Sequence[str]) -> list[Run]:
        """The runs that the words name, each once. See `told_apart`."""
        return told_apart({run.unique_id: run for word in words for run in self._runs(word)}.values())

    def _as_stored(self, uid: str, error: InvalidInput) -> Run:
        """The stored copy of a run whose folder is damaged, with a note; else the error."""
        try:
            run = self.existing_store.load(uid)
        except BenchwrightError:
            raise error from None
        note = Note(text=f"its folder cannot be read; shown as stored ({error})")
        return msgspec.structs.replace(run, notes=(*run.notes, note))

    def find(self, word: str) -> FoundRun:
        """The run that `word` names; InvalidInput if there is none, or several that only the store has."""
        try:
            folder = self.folder(word)
            return FoundRun(folder.id, folder.unique_id, folder)
        except InvalidInput as error:
            try:
                known = self.only_in_store(word)
            except StoreTrouble as trouble:
                raise InvalidInput(
                    error.what, where=error.where, remedy=f"{error.remedy}; the store cannot be searched: {trouble}"
                ) from None
            if not known:
                raise
            _refuse_ambiguous(word, known)
            return FoundRun(known[0].id, known[0].uid, None)

    def folder(self, word: str) -> RunFolder:
        """The run folder that `word` names; InvalidInput if there is none. A name counts as it was given to `run`, too."""
        try:
            return find_run(self.base.runs, word)
        except InvalidInput:
            if not word or safe_name(word) == word:
                raise
            try:
                return find_run(self.base.runs, safe_name(word))
            except InvalidInput:
                pass
            raise

    def only_in_store(self, word: str) -> list[RunRow]:
        """Runs that `word` means in the store, newest first: imported runs, those of other machines."""
        try:
            store = self.existing_store
        except NoStoreYet:
            return []
        if word == "last":
            return store.runs(RunFilter(), limit=1)
        if not word:
            return []
        for where in (RunFilter(uid=word), RunFilter(id=word)):
            if rows := store.runs(where, limit=None):
                return rows
        rows = store.runs(RunFilter(text=word), limit=None)
        if named := [row for row in rows if row.name == word]:
            return named
        meant = named_so(word, [row.id for row in rows])
        if meant:
            return [row for row in rows if row.id in meant]
        if PART_OF_UID.fullmatch(word):
            return [row for row in store.runs(RunFilter(), limit=None) if row.uid.startswith(word)]
        return []

    def row(self, uid: str) -> RunRow | None:
        """The store's row of a run; None if there is none, or no store. Raises StoreTrouble like the store."""
        try:
            return next(iter(self.existing_store.runs(RunFilter(uid=uid), limit=1)), None)
        except NoStoreYet:
            return None

    def elsewhere(self, uid: str) -> RunFolder | None:
        """The folder of a run that was ingested from outside this base, if it is still there."""
        row = self.row(uid)
        return None if row is None else folder_of(row)

    def annotation(self, run: Run) -> str | None:
        """The user's annotation of a run."""
        here = RunFolder(self.base.runs / run.id)
        is_here = here.path.is_dir() and here.unique_id == run.unique_id
        if is_here:
            return here.read_annotation()  # the folder is the truth
        if (annotation := self.beside_import(run.id).read_annotation()) is not None:
            return annotation
        try:
            row = self.row(run.unique_id)
        except StoreTrouble:
            return None
        return None if row is None else row.annotation

    def stored_logs(self, run: Run) -> dict[str, list[str]]:
        """The last lines of failed launches of a run whose folder is not on this machine."""
        if run.ok or os.path.isdir(run.folder):
            return {}
        try:
            return self.existing_store.logs(run.unique_id)
        except BenchwrightError:  # it is in no store, or that cannot be read: the report does without
            return {}

    def baselines(self) -> dict[str, str]:
        """Baselines, name → uid: those of the base folder, and those that only a shared store has."""
        kept = self.own_baselines.names()
        try:
            return self.existing_store.baselines() | kept
        except NoStoreYet:
            return kept
        except StoreTrouble:
            if not kept and self.url != self._own_url:
                raise
            return kept  # the file decides; an unusable store should not prevent a comparison

    def baseline(self, name: str) -> str:
        known = self.baselines()
        if name not in known:
            raise _no_baseline(name, known)
        return known[name]

    def called(self, uids: Iterable[str]) -> dict[str, str]:
        """uid → id of those runs that are known here."""
        wanted = set(uids)
        found = {folder.unique_id: folder.id for folder in all_runs(self.base.runs) if folder.unique_id in wanted}
        with suppress(StoreTrouble):
            for uid in wanted - found.keys():
                for row in self.existing_store.runs(RunFilter(uid=uid), limit=1):
                    found[uid] = row.id
        return found

    def set_baseline(self, name: str, word: str) -> FoundRun:
        """Names a run as a baseline, in a file of the base folder. See `share_baseline`."""
        found = self.find(word)
        self.own_baselines.set(name, found.id, found.uid)
        return found

    def share_baseline(self, name: str, found: FoundRun) -> None:
        """The same in the store, for its other users. Raises StoreTrouble."""
        if found.folder is not None:
            self.ingest(found.folder)
        self.store.set_baseline(name, found.uid)

    def remove_baseline(self, name: str) -> None:
        """Removes a baseline; the run stays. InvalidInput if there is none; StoreTrouble if the store still has it."""
        known = self.baselines()
        if name not in known:
            raise _no_baseline(name, known)
        self.own_baselines.remove(name)
        try:
            self.existing_store.remove_baseline(name)
        except NoStoreYet:
            return

    def ingest(self, folder: RunFolder, run: Run | None = None) -> bool:
        """Adds the run of a folder to the store; False if it was there already, unchanged.

        `run`: what is in the folder, if it is known and need not be read. InvalidInput if the folder holds no run, or one
        that would replace another.
        """
        if not folder.path.is_dir():
            raise InvalidInput("no such folder", where=str(folder.path), remedy="check the path")
        try:
            return self._ingested(folder, run)
        except StoreGone:
            self.close()  # it was rebuilt meanwhile
            return self._ingested(folder, run)

    def _ingested(self, folder: RunFolder, run: Run | None) -> bool:
        folder = folder.read_once()
        digest = digest_of(folder)
        if self.store.digest_of(folder.unique_id) == digest:
            return False
        entry = entry_of(folder, digest, run)
        self.refuse_another(entry)
        self.store.ingest_all([entry])
        return True

    def refuse_another(self, entry: StoreEntry) -> None:
        """InvalidInput if a run would replace another: one of the same id from another machine, or a changed copy."""
        run, digest = entry.run, entry.digest
        row = self.row(run.unique_id)
        if row is None:
            return
        if not run.uid and row.host != run.machine.hostname:
            raise InvalidInput(
                f"the store already has a run with this id, from {row.host}",
                where=run.folder,
                remedy=f"rename the folder and ingest it again; if it is the same run, first: benchwright runs delete {run.id}",
            )
        other = None if row.folder == run.folder else folder_of(row)
        if other is not None and other.unique_id == run.unique_id and digest_of(other) != digest:
            raise InvalidInput(
                f"this is a copy of {row.folder}, which still exists and differs",
                where=run.folder,
                remedy="delete the wrong one",
            )

    def keep(self, run: Run) -> bool:
        """Keeps a run without a folder, such as an imported one: as a file in the base folder, and in the store."""
        run = run_without_secrets(run)
        digest = imported_digest(run)
        if self.store.digest_of(run.unique_id) == digest and self.import_file(run.id).exists():
            return False
        self._imports.mkdir(parents=True, exist_ok=True)
        export_json([run], self.import_file(run.id))
        changed = self.store.ingest(run, digest=digest)
        self.store.annotate(run.unique_id, self.beside_import(run.id).read_annotation())
        return changed

    def import_file(self, run_id: str) -> Path:
        """Where an imported run is kept in the base folder."""
        return self._imports / f"{safe_name(run_id)}.json"

    def import_files(self) -> list[Path]:
        return sorted(path for path in self._imports.glob("*.json") if path.is_file())

    def beside_import(self, run_id: str) -> RunFolder:
        """The folder, created when needed, for the annotation of an imported run."""
        return RunFolder(self._imports / safe_name(run_id))

    @property
    def _imports(self) -> Path:
        return self.base.path / "imports"

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> Results:
        take_unstored(self.base, self.url, lambda: Results(self.base, self.url, patience_s=2.0))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _no_baseline(name: str, known: Mapping[str, str]) -> InvalidInput:
    there = ", ".join(known) or "there are none yet"
    return InvalidInput(
        f"no baseline is called '{name}'",
        remedy=did_you_mean(name, known) or f"set it with: benchwright baseline set {name} RUN ({there})",
    )


def _refuse_ambiguous(word: str, known: Sequence[RunRow]) -> None:
    """InvalidInput if several runs have this id; of several with the same prefix or name, the newest is meant."""
    same = [row for row in known if row.id == known[0].id]
    if len(same) > 1:
        shown = ", ".join(f"{row.uid} ({row.host}: {row.folder})" for row in same[:4])
        raise InvalidInput(f"{len(same)} runs are called '{same[0].id}': {shown}", remedy="name one by its id")


def told_apart(runs: Iterable[Run]) -> list[Run]:
    """The same runs; of those with equal ids, each id gets the uid appended, so that tables keep them apart."""
    runs = list(runs)
    shared = {run_id for run_id, count in Counter(run.id for run in runs).items() if count > 1}
    return [
        msgspec.structs.replace(run, id=f"{run.id} ({run.unique_id[:8]})") if run.id in shared else run for run in runs
    ]

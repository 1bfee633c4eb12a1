"""Results that were kept: found by a word, put into the store, taken from it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchwright.analysis.aggregate import aggregate
from benchwright.domain.errors import (
    BenchwrightError,
    InvalidInput,
    NoStoreYet,
    StoreGone,
    StoreTrouble,
    did_you_mean,
)
from benchwright.domain.run import Note, Run
from benchwright.pipeline.baselines import Baselines
from benchwright.pipeline.reading import read_run
from benchwright.planning.stems import safe_name
from benchwright.stores.base_folder import BaseFolder
from benchwright.stores.known_runs import find_run, named_so
from benchwright.stores.run_folder import RunFolder

if TYPE_CHECKING:
    from benchwright.stores.base import RunRow, Store

_PART_OF_A_RUN = (".data", "plan.json", "run.json", "machine.json", "packages.json", "annotation.json")


def store_url(given: str | None, base: BaseFolder, environment: Mapping[str, str]) -> str:
    """`--store`, else $BENCHWRIGHT_STORE, else the SQLite file of the base folder."""
    return given or environment.get("BENCHWRIGHT_STORE") or str(base.path / "store.db")


class Results:
    """The runs of one base folder and the store that indexes them. The store is opened when it is first needed."""

    def __init__(self, base: BaseFolder, url: str) -> None:
        self.base = base
        self.url = url
        self.own_baselines = Baselines(base.path)
        self._store: Store | None = None

    @staticmethod
    def choose(base: str | os.PathLike[str] | None, store: str | None, environment: Mapping[str, str]) -> Results:
        folder = BaseFolder.choose(base, environment)
        return Results(folder, store_url(store, folder, environment))

    @property
    def where(self) -> str:
        """The store's URL for messages: without the password."""
        return re.sub(r"(://[^/:@]*):[^@]*@", r"\1:***@", self.url)

    @property
    def store(self) -> Store:
        """The store, which is made if there is none."""
        return self._opened(create=True)

    @property
    def existing_store(self) -> Store:
        """The same, but NoStoreYet if there is none: looking makes nothing."""
        return self._opened(create=False)

    def _opened(self, *, create: bool) -> Store:
        if self._store is None:
            from benchwright.stores.base import open_store

            self._store = open_store(self.url, create=create, aggregate=aggregate)
        return self._store

    def run(self, word: str) -> Run:
        """The run that `word` names: `last`, a folder, its name or the beginning of it, `baseline:NAME`, or an id in the store."""
        if word.startswith("baseline:"):
            return self.run(self.baseline(word.removeprefix("baseline:")))
        run_id, folder = self.find(word)
        if folder is None:
            return self.existing_store.load(run_id)
        try:
            return read_run(folder)
        except InvalidInput as error:
            return self._as_stored(folder.id, error)

    def each(self, words: Sequence[str]) -> list[Run]:
        """The runs that the words name; one that two of them name comes once."""
        return list({run.id: run for run in map(self.run, words)}.values())

    def _as_stored(self, run_id: str, error: InvalidInput) -> Run:
        """What the store has of a run whose folder is damaged, which is said with it; else the error."""
        try:
            run = self.existing_store.load(run_id)
        except BenchwrightError:
            raise error from None
        note = Note(text=f"its folder cannot be read, this is what the store has of it ({error})")
        return msgspec.structs.replace(run, notes=(*run.notes, note))

    def find(self, word: str) -> tuple[str, RunFolder | None]:
        """The id of the run that `word` names, and its folder unless only the store has it; InvalidInput if none does."""
        try:
            folder = self.folder(word)
            return folder.id, folder
        except InvalidInput as error:
            try:
                known = self.only_in_store(word)
            except StoreTrouble as trouble:
                raise InvalidInput(
                    error.what, where=error.where, remedy=f"{error.remedy}; the store was no help: {trouble}"
                ) from None
            if not known:
                raise
            return known[0], None

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

    def only_in_store(self, word: str) -> list[str]:
        """Ids that `word` means in the store, newest first: imported runs, those of other machines."""
        from benchwright.stores.base import RunFilter

        try:
            store = self.existing_store
        except NoStoreYet:
            return []
        if word == "last":
            return [row.id for row in store.runs(RunFilter(), limit=1)]
        if not word or store.digest_of(word) is not None:
            return [word] if word else []
        rows = store.runs(RunFilter(text=word), limit=None)
        return [row.id for row in rows if row.name == word] or named_so(word, [row.id for row in rows])

    def row(self, run_id: str) -> RunRow | None:
        """What the store's list has of a run; None if it has none, or there is no store. StoreTrouble as the store."""
        from benchwright.stores.base import RunFilter

        try:
            return next(iter(self.existing_store.runs(RunFilter(id=run_id), limit=1)), None)
        except NoStoreYet:
            return None

    def elsewhere(self, run_id: str) -> RunFolder | None:
        """The folder of a run that was ingested from outside this base, if it is still there."""
        row = self.row(run_id)
        return None if row is None else folder_of(row)

    def annotation(self, run_id: str) -> str | None:
        """What a user said of a run."""
        for folder in (RunFolder(self.base.runs / run_id), self.beside_import(run_id)):
            if (said := folder.read_annotation()) is not None:
                return said
        if (self.base.runs / run_id).is_dir():
            return None  # the folder is the truth
        try:
            row = self.row(run_id)
        except StoreTrouble:
            return None
        return None if row is None else row.annotation

    def baselines(self) -> dict[str, str]:
        """Names that stand for runs: those of the base folder, and those that only a shared store knows."""
        kept = self.own_baselines.names()
        try:
            return self.existing_store.baselines() | kept
        except NoStoreYet:
            return kept
        except StoreTrouble:
            if not kept and self.url != str(self.base.path / "store.db"):
                raise
            return kept  # the file is the truth; a store that cannot be used is no reason to compare nothing

    def baseline(self, name: str) -> str:
        known = self.baselines()
        if name not in known:
            raise _no_baseline(name, known)
        return known[name]

    def set_baseline(self, name: str, word: str) -> str:
        """Lets `name` stand for a run, in a file of the base folder, which is the truth; its id. See `share_baseline`."""
        run_id, _ = self.find(word)
        self.own_baselines.set(name, run_id)
        return run_id

    def share_baseline(self, name: str, run_id: str) -> None:
        """The same in the store, for others who use it; StoreTrouble if that cannot be."""
        folder = RunFolder(self.base.runs / run_id)
        if folder.path.is_dir():
            self.ingest(folder)
        self.store.set_baseline(name, run_id)

    def remove_baseline(self, name: str) -> None:
        """Takes the name from its run, which stays. InvalidInput if there is none; StoreTrouble if the store still has it."""
        known = self.baselines()
        if name not in known:
            raise _no_baseline(name, known)
        self.own_baselines.remove(name)
        try:
            self.existing_store.remove_baseline(name)
        except NoStoreYet:
            return

    def ingest(self, folder: RunFolder) -> bool:
        """Puts the run of a folder into the store; False if it was there already, unchanged.

        InvalidInput if it is no run, or the store has another one of that id.
        """
        if not folder.path.is_dir():
            raise InvalidInput("there is no such folder", where=str(folder.path), remedy="check the path")
        try:
            return self._ingested(folder)
        except StoreGone:
            self.close()  # it was made anew meanwhile
            return self._ingested(folder)

    def _ingested(self, folder: RunFolder) -> bool:
        digest = digest_of(folder)
        if self.store.digest_of(folder.id) == digest:
            return False
        run = read_run(folder)
        self._refuse_another(run)
        changed = self.store.ingest(run, digest=digest)
        self.store.annotate(folder.id, folder.read_annotation())
        return changed

    def _refuse_another(self, run: Run) -> None:
        """Two machines that share a store may begin runs of one name in the same second: neither may replace the other."""
        row = self.row(run.id)
        if row is not None and row.host != run.machine.hostname:
            raise InvalidInput(
                f"the store has another run of this id, of {row.host}",
                where=run.folder,
                remedy=f"rename the folder and ingest it again; or, if that is the same run, 'benchwright runs delete {run.id}'",
            )

    def keep(self, run: Run) -> bool:
        """Keeps a run that has no folder here, such as an imported one: as a file of the base, and in the store."""
        from benchwright.reporters.export import export_json

        digest = hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(run))).hexdigest()
        if self.store.digest_of(run.id) == digest and self.import_file(run.id).exists():
            return False
        self._imports.mkdir(parents=True, exist_ok=True)
        export_json([run], self.import_file(run.id))
        changed = self.store.ingest(run, digest=digest)
        self.store.annotate(run.id, self.beside_import(run.id).read_annotation())
        return changed

    def import_file(self, run_id: str) -> Path:
        """Where an imported run is kept in the base folder."""
        return self._imports / f"{safe_name(run_id)}.json"

    def import_files(self) -> list[Path]:
        return sorted(self._imports.glob("*.json"))

    def beside_import(self, run_id: str) -> RunFolder:
        """A folder, made when it is needed, for what is said of an imported run."""
        return RunFolder(self._imports / safe_name(run_id))

    @property
    def _imports(self) -> Path:
        return self.base.path / "imports"

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _no_baseline(name: str, known: Mapping[str, str]) -> InvalidInput:
    there = ", ".join(known) or "there are none yet"
    return InvalidInput(
        f"there is no baseline called '{name}'",
        remedy=did_you_mean(name, known) or f"set it with: benchwright baseline set {name} RUN ({there})",
    )


def folder_of(row: RunRow) -> RunFolder | None:
    """The folder a run was ingested from, if it is still there."""
    folder = RunFolder(Path(row.folder))
    try:
        return folder if folder.id == row.id and (folder.path / "plan.json").is_file() else None
    except (OSError, ValueError):
        return None


def digest_of(folder: RunFolder) -> str:
    """Changes with anything a run is derived from."""
    digest = hashlib.sha256()
    for path in sorted(folder.path.iterdir()):
        # Not even opened if it is no file: reading a pipe that somebody put there would wait for ever.
        if path.name.endswith(_PART_OF_A_RUN) and ".interrupted-" not in path.name and path.is_file():
            digest.update(f"{path.name}\0".encode(errors="surrogateescape"))
            with open(path, "rb") as handle:
                while block := handle.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def size_of(folder: Path) -> int:
    """Bytes on disk of everything in a run's folder."""
    return sum(entry.stat().st_size for entry in folder.rglob("*") if entry.is_file())

"""Results that were kept: found by a word, put into the store, taken from it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchwright.analysis.aggregate import aggregate
from benchwright.domain.errors import BenchwrightError, InvalidInput, StoreTrouble, did_you_mean
from benchwright.domain.run import Run
from benchwright.pipeline.reading import read_run
from benchwright.planning.stems import safe_name
from benchwright.stores.base_folder import BaseFolder
from benchwright.stores.run_folder import RunFolder, all_runs, find_run
from benchwright.stores.whole_file import write_whole

if TYPE_CHECKING:
    from benchwright.stores.base import Store

BASELINES_VERSION = 1
_PART_OF_A_RUN = (".data", "plan.json", "machine.json", "packages.json", "annotation.json")


def store_url(given: str | None, base: BaseFolder, environment: Mapping[str, str]) -> str:
    """`--store`, else $BENCHWRIGHT_STORE, else the SQLite file of the base folder."""
    return given or environment.get("BENCHWRIGHT_STORE") or str(base.path / "store.db")


_BESIDE_DATABASE = ("-wal", "-shm", "-journal")


def _remove_database(path: Path) -> None:
    for suffix in ("", *_BESIDE_DATABASE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class _Baselines(msgspec.Struct, kw_only=True):
    format: str = "benchwright-baselines"
    version: int = BASELINES_VERSION
    names: dict[str, str] = {}


class Results:
    """The runs of one base folder and the store that indexes them. The store is opened when it is first needed."""

    def __init__(self, base: BaseFolder, url: str) -> None:
        self.base = base
        self.url = url
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
        if self._store is None:
            from benchwright.stores.base import open_store

            self._store = open_store(self.url, aggregate=aggregate)
        return self._store

    def run(self, word: str) -> Run:
        """The run that `word` names: `last`, a folder, its name or the beginning of it, `baseline:NAME`, or an id in the store."""
        if word.startswith("baseline:"):
            return self.run(self.baseline(word.removeprefix("baseline:")))
        try:
            return read_run(self.folder(word))
        except InvalidInput as error:
            known = self.only_in_store(word)
            if not known:
                raise
            try:
                return self.store.load(known[0])
            except BenchwrightError:
                raise error from None

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
        """Ids, in the store, that are `word` or begin with it, newest first: imported runs, those of other machines."""
        from benchwright.stores.base import RunFilter

        try:
            if word == "last":
                return [row.id for row in self.store.runs(RunFilter(), limit=1)]
            if not word or self.store.digest_of(word) is not None:
                return [word] if word else []
            return [r.id for r in self.store.runs(RunFilter(text=word), limit=None) if r.id.startswith(word)]
        except BenchwrightError:
            return []  # the folder is the truth: what is wrong with the store is not what was asked

    def find(self, word: str) -> tuple[str, RunFolder | None]:
        """The id of the run that `word` names, and its folder unless only the store has it."""
        try:
            folder = self.folder(word)
            return folder.id, folder
        except InvalidInput:
            known = self.only_in_store(word)
            if not known:
                raise
            return known[0], None

    def annotation(self, run_id: str) -> str | None:
        """What a user said of a run of this base."""
        said = RunFolder(self.base.runs / run_id).read_annotation()
        return said if said is not None else self.beside_import(run_id).read_annotation()

    def baselines(self) -> dict[str, str]:
        """Names that stand for runs: those of the base folder, and those that only a shared store knows."""
        kept = self._own_baselines()
        try:
            return self.store.baselines() | kept
        except StoreTrouble:
            if not kept:
                raise
            return kept  # the file is the truth; a store that cannot be used is no reason to compare nothing

    def _own_baselines(self) -> dict[str, str]:
        where = str(self._baselines_file)
        try:
            found = msgspec.json.decode(self._baselines_file.read_bytes(), type=_Baselines)
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

    def baseline(self, name: str) -> str:
        known = self.baselines()
        if name not in known:
            there = ", ".join(known) or "there are none yet"
            raise InvalidInput(
                f"there is no baseline called '{name}'",
                remedy=did_you_mean(name, known) or f"set it with: benchwright baseline set {name} RUN ({there})",
            )
        return known[name]

    def set_baseline(self, name: str, word: str) -> str:
        """Lets `name` stand for a run, in a file of the base folder, which is the truth, and in the store; its id."""
        run_id, folder = self.find(word)
        self._write_baselines({k: v for k, v in self._own_baselines().items() if k != name} | {name: run_id})
        if folder is not None:
            self.ingest(folder)
        self.store.set_baseline(name, run_id)
        return run_id

    def forget_baselines(self, run_id: str) -> None:
        """Removes the names that stand for a run which is deleted; the store does so by itself."""
        kept = self._own_baselines()
        if run_id in kept.values():
            self._write_baselines({name: other for name, other in kept.items() if other != run_id})

    def _write_baselines(self, names: dict[str, str]) -> None:
        write_whole(self._baselines_file, msgspec.json.encode(_Baselines(names=names)) + b"\n")

    @property
    def _baselines_file(self) -> Path:
        return self.base.path / "baselines.json"

    def ingest(self, folder: RunFolder) -> bool:
        """Puts the run of a folder into the store; False if it was there already, unchanged."""
        digest = digest_of(folder)
        if self.store.digest_of(folder.id) == digest:
            return False
        changed = self.store.ingest(read_run(folder), digest=digest)
        self.store.annotate(folder.id, folder.read_annotation())
        return changed

    def keep(self, run: Run) -> bool:
        """Keeps a run that has no folder here, such as an imported one: as a file of the base, and in the store."""
        from benchwright.reporters.export import export_json

        digest = hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(run))).hexdigest()
        if self.store.digest_of(run.id) == digest:
            return False
        self._imports.mkdir(parents=True, exist_ok=True)
        export_json([run], self.import_file(run.id))
        changed = self.store.ingest(run, digest=digest)
        self.store.annotate(run.id, self.beside_import(run.id).read_annotation())
        return changed

    def import_file(self, run_id: str) -> Path:
        """Where an imported run is kept in the base folder."""
        return self._imports / f"{safe_name(run_id)}.json"

    def beside_import(self, run_id: str) -> RunFolder:
        """A folder, made when it is needed, for what is said of an imported run."""
        return RunFolder(self._imports / safe_name(run_id))

    @property
    def _imports(self) -> Path:
        return self.base.path / "imports"

    def rebuild(self) -> Iterator[tuple[str, str | None]]:
        """Makes the store anew from the run folders; yields each run's name and, if it could not be read, why.

        A store that is a file is made beside the old one, whatever state that is in, and takes its place at the end; on a
        server every run is ingested again.
        """
        path = self._store_file()
        if path is None:
            yield from self.fill()
            return
        self.close()
        aside = path.with_name(f"{path.name}.rebuilding")
        _remove_database(aside)
        with Results(self.base, str(aside)) as fresh:
            yield from fresh.fill()
        for suffix in _BESIDE_DATABASE:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        os.replace(aside, path)

    def _store_file(self) -> Path | None:
        """The store's file, or None if it is on a server."""
        scheme, separator, rest = self.url.partition("://")
        if not separator:
            return Path(self.url).expanduser()
        return Path(rest.removeprefix("/")) if scheme.startswith("sqlite") and rest else None

    def fill(self) -> Iterator[tuple[str, str | None]]:
        """Ingests every folder; yields each run's name and, if it could not be read, why."""
        for folder in all_runs(self.base.runs):
            try:
                self.ingest(folder)
                yield folder.id, None
            except InvalidInput as error:
                yield folder.id, str(error)
        yield from self._rebuild_imports()
        for name, run_id in self.baselines().items():
            if self.store.digest_of(run_id) is not None:
                self.store.set_baseline(name, run_id)

    def _rebuild_imports(self) -> Iterator[tuple[str, str | None]]:
        from benchwright.reporters.export import read_export

        for path in sorted(self._imports.glob("*.json")):
            try:
                for run in read_export(path):
                    self.keep(run)
                    yield run.id, None
            except InvalidInput as error:
                yield path.name, str(error)

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def digest_of(folder: RunFolder) -> str:
    """Changes with anything a run is derived from."""
    digest = hashlib.sha256()
    for path in sorted(folder.path.iterdir()):
        if path.name.endswith(_PART_OF_A_RUN) and ".interrupted-" not in path.name:
            digest.update(f"{path.name}\0".encode())
            with open(path, "rb") as handle:
                while block := handle.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def size_of(folder: Path) -> int:
    """Bytes on disk of everything in a run's folder."""
    return sum(entry.stat().st_size for entry in folder.rglob("*") if entry.is_file())

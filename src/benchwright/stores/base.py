"""The store seam. Entry-point group: `benchwright.stores`; one contract test that every variant passes.

A store is an index of runs that can be rebuilt from the run folders; only annotations and baselines live in it alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Protocol, Self

import msgspec

from benchwright.domain.errors import InvalidInput, did_you_mean
from benchwright.domain.run import Run
from benchwright.domain.status import Status

ENTRY_POINT_GROUP = "benchwright.stores"
Aggregate = Callable[[str, Sequence[float], int | None], float]  # method, values, workers

# The same as the entry points of this package: looking those up costs more than loading this.
BUILT_IN = {
    "sqlite": "benchwright.stores.sql_store:open_store",
    "postgresql": "benchwright.stores.sql_store:open_store",
    "postgres": "benchwright.stores.sql_store:open_store",
}


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are meant; what is None or empty does not restrict.

    `id` is that of one run. `name` and `benchmark` are globs (`*`, `?`, `[a-z]`, `[!a]`) and mind case. `labels` must all be there, on the run
    or on one of its benchmarks; so must `tags`. `machine` is a fingerprint, the beginning of one, or a host name. `since` and `until`
    are ISO 8601, local time unless they name a zone; a bare date as `until` includes that day. `text` is looked for,
    whatever its case, in id, name, host, labels, annotation and the names of benchmarks.
    """

    id: str | None = None
    name: str | None = None
    labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    machine: str | None = None
    since: str | None = None
    until: str | None = None
    status: Status | None = None
    benchmark: str | None = None
    text: str | None = None


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of runs shows of each.

    `machine` is its fingerprint, `host` its name. `failed` counts benchmarks. `size_bytes`: the files of its folder,
    when it was ingested, and its samples in the store.
    """

    id: str
    name: str
    started: str
    ended: str | None
    status: Status
    machine: str
    host: str
    folder: str
    labels: dict[str, str]
    benchmarks: int
    failed: int
    annotation: str | None
    size_bytes: int


class Store(Protocol):
    """Keeps runs. Every method raises StoreTrouble, with a remedy, when the store cannot be used."""

    def ingest(self, run: Run, *, digest: str) -> bool:
        """Keeps `run`; whether that changed anything.

        The same id and digest again is a no-op; with another digest everything of that run but its annotation and
        the baselines that name it is replaced, at once or not at all.
        """
        ...

    def digest_of(self, run_id: str) -> str | None:
        """The digest a run was ingested with; None if it is not here."""
        ...

    def runs(self, where: RunFilter, *, limit: int | None = 50, newest_first: bool = True) -> list[RunRow]:
        """The runs that are meant, by the time they were started."""
        ...

    def load(self, run_id: str) -> Run:
        """The run, equal to what was ingested; InvalidInput if it is not here."""
        ...

    def delete(self, run_id: str) -> bool:
        """Forgets a run and the baselines that name it; whether it was here. Its folder is not touched."""
        ...

    def annotate(self, run_id: str, text: str | None) -> None:
        """Sets or, with None, removes what a user says of a run; InvalidInput if it is not here."""
        ...

    def set_baseline(self, name: str, run_id: str) -> None:
        """From now on `name` means that run; InvalidInput if it is not here."""
        ...

    def remove_baseline(self, name: str) -> bool:
        """From now on `name` means no run; whether it meant one. The run stays."""
        ...

    def baseline(self, name: str) -> str | None:
        """The id of the run that `name` means."""
        ...

    def baselines(self) -> dict[str, str]:
        """Every baseline's name and the id of its run."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the store, in words; empty if nothing is."""
        ...

    def schema_version(self) -> str:
        """The version of the store as it stands."""
        ...

    def migrate(self) -> None:
        """Brings an older store to the current version, at once or not at all."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


def open_store(url: str, *, create: bool = True, aggregate: Aggregate | None = None) -> Store:
    """The store at `url`: a path, or `scheme://…` of a store variant; see `sql_store.open_store` for what is raised."""
    scheme = url.partition("://")[0].partition("+")[0].lower() if "://" in url else "sqlite"
    opener: Any
    if scheme in BUILT_IN:
        module, _, name = BUILT_IN[scheme].partition(":")
        opener = getattr(importlib.import_module(module), name)
    else:
        added = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}
        if scheme not in added:
            known = sorted({*BUILT_IN, *added})
            remedy = did_you_mean(scheme, known) or "give a path, sqlite:////path or postgresql://user@host/database"
            raise InvalidInput(f"'{scheme}' is not a kind of store", where="--store", remedy=remedy)
        opener = added[scheme].load()
    store: Store = opener(url, create=create, aggregate=aggregate)
    return store

"""The store seam. Entry-point group: `benchwright.stores`; one contract test that every variant passes.

A store is an index of runs that can be rebuilt from the run folders; only annotations and baselines live in it alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, Self

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.plugins.registry import Registry
from benchwright.core.run import Run
from benchwright.core.status import Status

ENTRY_POINT_GROUP = "benchwright.stores"
Aggregate = Callable[[str, Sequence[float], int | None], float]  # method, values, workers

_FORMS = "give a path, sqlite:////path or postgresql://user@host/database"
# A kind of database without its slashes, or a password before a host.
_NO_PATH = re.compile(
    r"(?:sqlite|postgres|postgresql|mysql|mariadb|oracle|mssql)(?:\+\w+)?:|[^@]*:[^/@]*@", re.IGNORECASE
)


class StoreEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A run to be kept. `digest` changes with anything the run is derived from. `annotation`: what a user says of it, or
    None; UNSET leaves what the store has."""

    run: Run
    digest: str
    annotation: str | msgspec.UnsetType | None = msgspec.UNSET


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are meant; what is None or empty does not restrict.

    `id` is what a run is called, `uid` what tells it apart. `name` and `benchmark` are globs (`*`, `?`, `[a-z]`, `[!a]`) and mind case. `labels` must all be there, on the run
    or on one of its benchmarks; so must `tags`. `machine` is a fingerprint, the beginning of one, or a host name. `since` and `until`
    are ISO 8601, local time unless they name a zone; a bare date as `until` includes that day. `text` is looked for,
    whatever its case, in id, name, host, labels, annotation and the names of benchmarks.
    """

    id: str | None = None
    uid: str | None = None
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

    `uid` tells it apart from every other run (`Run.unique_id`); `id` is what it is called, and runs of two base folders may
    share one. `machine` is its fingerprint, `host` its name. `failed` counts benchmarks. `size_bytes`: the files of its folder,
    when it was ingested, and its samples in the store.
    """

    id: str
    uid: str
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


class RunStanding(msgspec.Struct, frozen=True):
    """How it stands with a run of the store. `complete`: it has ended, and will not change any more."""

    uid: str
    called: str
    folder: str
    complete: bool


class RunStore(Protocol):
    """Keeps runs. Every method raises StoreTrouble, with a remedy, when the store cannot be used.

    A run is meant by its uid, or by its id where only one run of the store has that; InvalidInput names the others if
    there are several.
    """

    def ingest(self, run: Run, *, digest: str) -> bool:
        """Keeps `run`; whether that changed anything.

        The same uid and digest again is a no-op; with another digest everything of that run but its annotation and
        the baselines that name it is replaced, at once or not at all.
        """
        ...

    def ingest_all(self, entries: Sequence[StoreEntry], *, replace: bool = False) -> None:
        """The same for many, at once or not at all. `replace`: also those that are there with the same digest."""
        ...

    def digest_of(self, uid: str) -> str | None:
        """The digest a run was ingested with; None if it is not here. Only by uid."""
        ...

    def digests(self) -> dict[str, str]:
        """The uid of every run that is here, and its digest."""
        ...

    def runs(self, where: RunFilter, *, limit: int | None = 50, newest_first: bool = True) -> list[RunRow]:
        """The runs that are meant, by the time they were started."""
        ...

    def standing(self) -> list[RunStanding]:
        """How it stands with every run that is here."""
        ...

    def load(self, run_id: str) -> Run:
        """The run, equal to what was ingested; InvalidInput if it is not here. StoreTrouble if its numbers changed."""
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
        """The uid of the run that `name` means."""
        ...

    def baselines(self) -> dict[str, str]:
        """Every baseline's name and the uid of its run."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the store, in words; empty if nothing is."""
        ...

    def duplicates(self) -> list[str]:
        """Runs that are called the same, and runs that are there twice under two ids, in words. Nothing is wrong with them."""
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


class OpenStore(Protocol):
    """What an entry point of the group names. `create`: a store that does not exist is made; else NoStoreYet.

    `patience_s`: how long to wait for others who have it locked; None: as long as that takes on a loaded machine.
    """

    def __call__(
        self, url: str, *, create: bool, aggregate: Aggregate | None, patience_s: float | None = None
    ) -> RunStore: ...


STORES: Registry[OpenStore] = Registry(
    ENTRY_POINT_GROUP,
    "kind of store",
    dict.fromkeys(("sqlite", "postgresql", "postgres"), "benchwright.store.sql_store:open_store"),
)


def open_store(
    url: str, *, create: bool = True, aggregate: Aggregate | None = None, patience_s: float | None = None
) -> RunStore:
    """The store at `url`: a path, or `scheme://…` of a store variant; see `OpenStore`."""
    return STORES.load(check_url(url))(url, create=create, aggregate=aggregate, patience_s=patience_s)


def check_url(url: str, where: str = "--store") -> str:
    """The kind of store that `url` names; InvalidInput, which never repeats the URL, if it names none.

    `postgresql:user:password@host` would otherwise be the name of an SQLite file, password included.
    """
    if "://" not in url:
        if _NO_PATH.match(url):
            raise InvalidInput("this is neither a path nor a URL", where=where, remedy=_FORMS)
        return "sqlite"
    scheme = url.partition("://")[0].partition("+")[0].lower()
    if scheme not in STORES:
        shown = f"'{scheme}'" if scheme.isidentifier() else "this"
        remedy = did_you_mean(scheme, STORES.names()) or _FORMS
        raise InvalidInput(f"{shown} is not a kind of store", where=where, remedy=remedy)
    return scheme

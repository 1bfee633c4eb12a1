"""The store seam. Entry-point group: `benchwright.stores`; every variant passes one contract test.

A store is an index of runs that can be rebuilt from the run folders; only annotations and baselines exist nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.metric import Direction
from benchwright.core.registry import Registry
from benchwright.core.run import Run
from benchwright.core.status import Status

ENTRY_POINT_GROUP = "benchwright.stores"
Aggregate = Callable[[str, Sequence[float], int | None], float]  # method, values, workers

_FORMS = "give a path, sqlite:////path, postgresql://user@host/database or https://host"
# A kind of database without its slashes, or a password in front of a host.
_NO_PATH = re.compile(
    r"(?:sqlite|postgres|postgresql|mysql|mariadb|oracle|mssql)(?:\+\w+)?:|[^@]*:[^/@]*@", re.IGNORECASE
)


class StoreEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A run to store. `digest` changes with anything the run is derived from. `annotation`: the user's text or None;
    UNSET keeps what the store has. `logs`: the last lines of each failed launch, by job."""

    run: Run
    digest: str
    annotation: str | msgspec.UnsetType | None = msgspec.UNSET
    logs: dict[str, list[str]] = {}


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to find; None or empty does not restrict.

    `id` is a run's name, `uid` its unique id. `name` and `benchmark` are case-sensitive globs (`*`, `?`, `[a-z]`, `[!a]`).
    The run or one of its benchmarks must have each of `labels` and `tags`. `machine` is a fingerprint, the beginning of
    one, or a host name. `since` and `until` are ISO 8601, local time unless they name a zone; a bare date as `until`
    includes that day. `text` is searched for, ignoring case, in id, name, host, labels, annotation and benchmark names.
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
    """One line of a list of runs.

    `uid` is unique (`Run.unique_id`); `id` is the run's name, which runs of two base folders may share. `status` is a
    `Status`; of a run that is not in a store, also its state. `machine` is the fingerprint, `host` the host name. `failed`
    counts benchmarks. `revision`: of the code that was measured, such as `main 1a2b3c4d5e+`. `size_bytes`: the files of its folder when it was ingested, and its samples in the store.
    """

    id: str
    uid: str
    name: str
    started: str
    ended: str | None
    status: str
    machine: str
    host: str
    folder: str
    labels: dict[str, str]
    benchmarks: int
    failed: int
    annotation: str | None
    size_bytes: int
    revision: str = ""


class RunStanding(msgspec.Struct, frozen=True):
    """The state of a stored run. `complete`: it has ended and will not change any more. `summarized`: it has summaries, by the
    rules of today."""

    uid: str
    called: str
    folder: str
    complete: bool
    summarized: bool = True


class SummaryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which summaries to find; None or empty does not restrict.

    `series`: their ids. `benchmark` is a glob, as in `RunFilter`; the treatment of an A/B is also found by the name that its sides
    share. `metric` is the whole name. `headline`: only the metric that each benchmark is known by. `commit`: the beginning of one.
    `runs`: only of these runs.
    """

    series: tuple[str, ...] = ()
    benchmark: str | None = None
    metric: str | None = None
    headline: bool = False
    commit: str | None = None
    runs: RunFilter = RunFilter()


class SummaryPoint(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One metric of one benchmark in one run, as reports show it.

    `run` is the run's id. `place`: its number among the summaries of the run, `result` that of its benchmark. `value` is None if it
    is not finite; `low` and `high`, the confidence interval, are None if there is none. `headline`: the benchmark is known by it.
    `commit`: of the code that was measured, with a `+` where files were modified. `doubt`: why it decides nothing.
    """

    run: str
    uid: str
    started: str
    started_s: float
    ended: str | None
    place: int
    result: int
    value: float | None
    low: float | None
    high: float | None
    widened: float
    launches: int
    headline: bool
    revision: str
    commit: str | None
    commit_time: str | None
    doubt: str | None


class SummarySeries(msgspec.Struct, frozen=True, kw_only=True):
    """A series that may be compared over time: one benchmark, metric and labels, on one machine, with one setting.

    `id` is the same in every store. `pair`: of the treatment of an A/B, the name that its sides share. `setting`: what the numbers
    depend on besides code and machine. `points`: oldest first.
    """

    id: str
    benchmark: str
    pair: str
    metric: str
    labels: dict[str, str]
    unit: str | None
    direction: Direction
    source: str
    machine: str
    host: str
    setting: dict[str, str]
    points: tuple[SummaryPoint, ...] = ()


class RunStore(Protocol):
    """Stores runs. Every method raises StoreTrouble, with a remedy, when the store cannot be used.

    `run_id` is a uid, or an id that only one run of the store has; InvalidInput lists the runs if several have it.
    """

    def ingest(self, run: Run, *, digest: str) -> bool:
        """Stores `run`; returns whether that changed anything.

        The same uid and digest again is a no-op. With another digest the stored run is replaced in one transaction;
        its annotation and the baselines that name it stay.
        """
        ...

    def ingest_all(self, entries: Sequence[StoreEntry], *, replace: bool = False) -> None:
        """The same for many, in one transaction. `replace`: also runs already stored with the same digest."""
        ...

    def digest_of(self, uid: str) -> str | None:
        """The digest a run was ingested with; None if it is not stored. Only by uid."""
        ...

    def digests(self) -> dict[str, str]:
        """Uid → digest, of every stored run."""
        ...

    def runs(self, where: RunFilter, *, limit: int | None = 50, newest_first: bool = True) -> list[RunRow]:
        """The runs that match, in the order they were started."""
        ...

    def standing(self) -> list[RunStanding]:
        """The state of every stored run."""
        ...

    def load(self, run_id: str) -> Run:
        """The run exactly as it was ingested; InvalidInput if it is not stored, StoreTrouble if its numbers changed."""
        ...

    def load_all(self, uids: Sequence[str]) -> Iterator[Run]:
        """Several runs by uid, in that order, without missing and damaged ones."""
        ...

    def logs(self, run_id: str) -> dict[str, list[str]]:
        """The last lines of its failed launches, as they were stored with it; InvalidInput if the run is not stored."""
        ...

    def series(self, where: SummaryFilter, *, limit: int | None = None, offset: int = 0) -> list[SummarySeries]:
        """The series that match, each with the newest of its points that do; by benchmark, metric and host."""
        ...

    def summaries(
        self, where: SummaryFilter, *, newest: int | None = None, most: int | None = None
    ) -> list[SummarySeries]:
        """The same with all points that match. `newest`: of each series only so many. `most`: thinned to about so many; the
        extremes stay exact, points without a value are left out."""
        ...

    def delete(self, run_id: str) -> bool:
        """Removes a run and the baselines that name it, not its folder; returns whether it was stored."""
        ...

    def annotate(self, run_id: str, text: str | None) -> None:
        """Sets or, with None, removes a run's annotation; InvalidInput if the run is not stored."""
        ...

    def set_baseline(self, name: str, run_id: str) -> None:
        """Makes the run the baseline `name`; InvalidInput if it is not stored."""
        ...

    def remove_baseline(self, name: str) -> bool:
        """Removes the baseline, not its run; returns whether there was one."""
        ...

    def baseline(self, name: str) -> str | None:
        """The uid of the baseline's run; None if there is no such baseline."""
        ...

    def baselines(self) -> dict[str, str]:
        """Baseline → the uid of its run."""
        ...

    def check(self) -> list[str]:
        """The problems of the store; empty if it is sound."""
        ...

    def duplicates(self) -> list[str]:
        """Runs that share a name, and runs stored twice under two ids. Neither is an error."""
        ...

    def schema_version(self) -> str:
        """The store's current version."""
        ...

    def migrate(self) -> None:
        """Upgrades an older store to the current version, in one transaction."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


class OpenStore(Protocol):
    """The type of a store, as entry points of the group name it. `create`: make a store that does not exist; otherwise NoStoreYet.

    `patience_s`: how long to wait for a lock; None: long enough for a busy machine.
    """

    def __call__(
        self, url: str, *, create: bool, aggregate: Aggregate | None, patience_s: float | None = None
    ) -> RunStore: ...


STORES: Registry[OpenStore] = Registry(ENTRY_POINT_GROUP, "kind of store")


def open_store(
    url: str, *, create: bool = True, aggregate: Aggregate | None = None, patience_s: float | None = None
) -> RunStore:
    """The store at `url`: a path, or `scheme://…` of a store variant; see `OpenStore`."""
    return STORES.load(check_url(url))(url, create=create, aggregate=aggregate, patience_s=patience_s)


def check_url(url: str, where: str = "--store") -> str:
    """The kind of store that `url` names; InvalidInput if it names none. The error never repeats the URL.

    `postgresql:user:password@host` would otherwise become the name of an SQLite file, password included.
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


def check_address(url: str, where: str) -> None:
    """InvalidInput if no such store can be opened, as far as `url` alone shows: a kind of store may have a `check_address`."""
    kind = check_url(url, where)
    if "://" in url and (check := vars(STORES.load(kind)).get("check_address")) is not None:
        check(url, where)

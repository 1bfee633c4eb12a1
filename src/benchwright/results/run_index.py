"""The list of all runs: those of the store, and those on disk that are not in it (yet).

A run is listed as soon as its folder exists: while it runs, after it was interrupted or killed, and if it could not be
stored. Listing changes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BenchwrightError, InvalidInput, NoStoreYet, StoreTrouble
from benchwright.core.provenance import revision_words, revisions_of
from benchwright.core.run import Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.registry import kind_of
from benchwright.plan.file_names import safe_name
from benchwright.report.export import read_export
from benchwright.results.after_run import headline_of
from benchwright.results.kept_runs import Results
from benchwright.results.run_digest import size_of
from benchwright.runs.known_runs import by_start, unplanned
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder
from benchwright.runs.stored_plan import StoredPlan
from benchwright.store.base import RunFilter, RunRow, RunStanding, RunStore, SummaryFilter, SummarySeries
from benchwright.store.run_query import matches, started_s
from benchwright.store.summaries import condensed_run, is_meant, summaries_of

Dated = tuple[float, "ListedRun"]  # when it was started, in seconds since 1970
RUNNING, KILLED, UNREADABLE = "running", "killed", "unreadable"
_OF_STORES = {status.value for status in Status}


class ListedRun(RunRow, frozen=True, kw_only=True):
    """One line of the list. `headline`: what was measured, in a few words. `in_store`: the line comes from the store.
    `ending`: how far a killed run got, and how to go on. `problem`: why the run cannot be read."""

    in_store: bool
    headline: str = ""
    ending: str = ""
    problem: str | None = None


class Listed(msgspec.Struct, frozen=True):
    """`trouble`: why the store could not be used; runs that only it has are missing then."""

    rows: list[ListedRun]
    trouble: StoreTrouble | None = None


class ListedSummaries(NamedTuple):
    """A series may stand in it several times. `unreadable`: runs that could not be read; `trouble` as in `Listed`."""

    series: list[SummarySeries]
    unreadable: list[str]
    trouble: StoreTrouble | None = None


def list_runs(results: Results, *, limit: int | None = None, status: str | None = None, **wanted: Any) -> Listed:
    """The newest runs that match, from disk and store."""
    where = RunFilter(**wanted)
    try:
        return Listed(_rows(results, results.existing_store, where, status, limit))
    except NoStoreYet:
        return Listed(_rows(results, None, where, status, limit))
    except StoreTrouble as error:
        return Listed(_rows(results, None, where, status, limit), error)


def read_listed(results: Results, rows: Sequence[ListedRun], unreadable: list[str]) -> Iterator[Run]:
    """The runs in the order of `rows`; what cannot be read, `runs` says why."""
    stored = [row.uid for row in rows if row.in_store]
    loaded = results.existing_store.load_all(stored) if stored else iter(())
    following = next(loaded, None)
    for row in rows:
        if row.in_store:
            if following is not None and following.unique_id == row.uid:
                yield following
                following = next(loaded, None)
            else:
                unreadable.append(row.id)
            continue
        folder = RunFolder(results.base.runs / row.id)
        try:
            yield read_run(folder, kind_of) if folder.path.is_dir() else results.run(row.id)
        except BenchwrightError:
            unreadable.append(row.id)


def list_summaries(results: Results, where: SummaryFilter, *, limit: int | None = None) -> ListedSummaries:
    """The summaries that match, of runs in the store and on disk, without samples where the store has summaries.

    `limit`: only of the newest runs.
    """
    try:
        return _summaries(results, results.existing_store, where, limit)
    except NoStoreYet:
        return _summaries(results, None, where, limit)
    except StoreTrouble as error:
        return _summaries(results, None, where, limit)._replace(trouble=error)


def _summaries(results: Results, store: RunStore | None, where: SummaryFilter, limit: int | None) -> ListedSummaries:
    standing = [] if store is None else store.standing()
    on_disk = _to_look_at(results.base.runs, standing)
    # The sides of an A/B are called `NAME control` and `NAME treatment`.
    runs = (
        where.runs if where.benchmark is None else msgspec.structs.replace(where.runs, benchmark=f"{where.benchmark}*")
    )
    unreadable: list[str] = []
    to_read = _merged(_outside(results, on_disk, standing, runs, None), None)
    stored: list[SummarySeries] = []
    if store is not None:
        outdated = {each.uid for each in standing if not each.summarized}
        elsewhere = outdated | {folder.unique_id for folder in on_disk}
        kept = None
        if outdated or limit is not None:
            rows = _rows(results, store, runs, None, limit)
            kept = {row.uid for row in rows if row.in_store} - elsewhere
            to_read = [row for row in rows if row.uid not in kept]
        stored = [
            msgspec.structs.replace(each, points=points)
            for each in store.summaries(where, newest=None if limit is None else limit + len(elsewhere))
            if (points := tuple(p for p in each.points if p.uid not in elsewhere and (kept is None or p.uid in kept)))
        ]
    readable = [row for row in reversed(to_read) if row.status not in (RUNNING, UNREADABLE)]
    found = [
        msgspec.structs.replace(each.series, points=(each.point,))
        for run in read_listed(results, readable, unreadable)
        for each in summaries_of(condensed_run(run))
        if is_meant(each, where)
    ]
    return ListedSummaries([*stored, *found], unreadable)


def _rows(
    results: Results, store: RunStore | None, where: RunFilter, status: str | None, limit: int | None
) -> list[ListedRun]:
    standing = [] if store is None else store.standing()
    on_disk = _to_look_at(results.base.runs, standing)
    sources = _outside(results, on_disk, standing, where, status)
    if store is not None:
        sources.append(_in_store(store, {folder.unique_id for folder in on_disk}, where, status, limit))
    return _merged(sources, limit)


def _outside(
    results: Results,
    on_disk: Sequence[RunFolder],
    standing: Sequence[RunStanding],
    where: RunFilter,
    status: str | None,
) -> list[Iterable[Dated]]:
    """Runs that are not in the store, or not as they are on disk."""
    return [
        _on_disk(on_disk, where, status),
        _unplanned(results.base.runs, where, status),
        _imported(results, standing, where, status),
    ]


def _merged(sources: Sequence[Iterable[Dated]], limit: int | None) -> list[ListedRun]:
    """Newest first."""
    merged = heapq.merge(*sources, key=lambda found: found[0], reverse=True)
    return [row for _, row in islice(merged, limit)]


def _in_store(
    store: RunStore, on_disk: set[str], where: RunFilter, status: str | None, limit: int | None
) -> Iterator[Dated]:
    """Newest first, without those read from disk."""
    if status is not None and status not in _OF_STORES:
        return
    asked = msgspec.structs.replace(where, status=Status(status) if status else None)
    for row in store.runs(asked, limit=None if limit is None else limit + len(on_disk)):
        if row.uid not in on_disk:
            yield started_s(row.started), _of_row(row)


def _of_row(row: RunRow) -> ListedRun:
    headline = _headline(RunFolder(Path(row.folder))) if row.folder else ""
    return ListedRun(**msgspec.structs.asdict(row), in_store=True, headline=headline)


def _headline(folder: RunFolder) -> str:
    """Empty for a run whose folder is gone or damaged, or was written before there were headlines."""
    headline = folder.read_ending().headline
    return headline if isinstance(headline, str) else ""


def _to_look_at(runs: Path, standing: Sequence[RunStanding]) -> list[RunFolder]:
    """Run folders, newest first, except complete ones that are in the store."""
    complete_folders = {each.folder for each in standing if each.complete}
    complete = {each.uid for each in standing if each.complete}
    found = by_start(runs, lambda path: str(path) not in complete_folders)
    return [folder for folder in found if folder.unique_id not in complete]


def _on_disk(folders: Sequence[RunFolder], where: RunFilter, status: str | None) -> Iterator[Dated]:
    for folder in folders:
        row, benchmarks = _of_folder(folder)
        if (status is None or row.status == status) and matches(row, benchmarks, where):
            head = folder.read_head()
            yield (0.0 if head is None else head.started), _measured(row)


def _measured(row: ListedRun) -> ListedRun:
    """With its size, which takes a stat of every file, and how it was killed; only for lines that are shown."""
    ending = _how_killed(RunFolder(Path(row.folder))) if row.status == KILLED else ""
    return msgspec.structs.replace(row, size_bytes=size_of(Path(row.folder)), ending=ending)


def _how_killed(folder: RunFolder) -> str:
    """By what its streams say: run.json may be some seconds older."""
    jobs = folder.read_jobs()
    try:
        launches = [x for result in read_run(folder, kind_of).results for x in result.launches]
    except InvalidInput:
        launches = []
    ended = (x for x in launches if x.status in (Status.OK, Status.FAILED) and x.reason is not Reason.AGENT_LOST)
    done = len({x.position for x in ended})
    planned = f" of {len(jobs.launches):,}" if jobs is not None else ""
    return f"killed after {done:,}{planned} launches; continue: bw run --resume={folder.id}"


def _unplanned(runs: Path, where: RunFilter, status: str | None) -> Iterator[Dated]:
    """Runs whose folder exists, but not yet their plan."""
    for folder in unplanned(runs):
        begun_s = folder.path.stat().st_mtime
        killed = not folder.is_being_made()
        row = ListedRun(
            id=folder.id, uid=folder.id, name=folder.id, ended=None, status=KILLED if killed else RUNNING, machine="",
            started=datetime.fromtimestamp(begun_s).astimezone().isoformat(timespec="seconds"), host="", labels={},
            folder=str(folder.path), benchmarks=0, failed=0, annotation=None, size_bytes=size_of(folder.path),
            in_store=False, ending="killed while it was being planned; nothing was measured" if killed else "",
        )  # fmt: skip
        if (status is None or row.status == status) and matches(row, (), where):
            yield begun_s, row


def _of_folder(folder: RunFolder) -> tuple[ListedRun, Sequence[Benchmark]]:
    try:
        plan: StoredPlan | None = folder.read_plan()
        machine = folder.read_machine()
        problem = "there is no readable machine.json" if machine is None else None
    except InvalidInput as error:
        plan, machine, problem = None, None, str(error)
    body = folder.read_run()
    status = UNREADABLE
    if problem is None:
        try:
            status = _status_of(folder, body)
        except InvalidInput as error:
            problem = str(error)
    row = ListedRun(
        id=folder.id,
        uid=folder.unique_id,
        name=folder.id if plan is None else plan.name_of(folder.id),
        started="" if plan is None else plan.started,
        ended=body["ended"] if body is not None and isinstance(body.get("ended"), str) else None,
        status=status,
        machine="" if machine is None else machine.fingerprint,
        host="" if machine is None else machine.hostname,
        folder=str(folder.path),
        labels={} if plan is None else plan.labels,
        revision=revision_words(revisions_of(folder.read_history())),
        benchmarks=0 if plan is None else len(plan.benchmarks),
        failed=_failed(body),
        annotation=folder.read_annotation(),
        size_bytes=0,
        in_store=False,
        headline=_headline(folder),
        problem=problem,
    )
    return row, () if plan is None else plan.benchmarks


def _status_of(folder: RunFolder, body: dict[str, Any] | None) -> str:
    """The run's state, from run.json or, if that is damaged, from the streams. InvalidInput if both are unreadable."""
    if folder.is_being_made():
        return RUNNING
    if body is None and not (folder.path / "run.json").exists():
        return KILLED  # before its first launch ended
    status = (body or {}).get("status")
    if body is None or status not in _OF_STORES:
        return read_run(folder, kind_of).status.value
    if body.get("ended") is None:
        return KILLED if body.get("state") == RUNNING else Status.INTERRUPTED.value
    return str(status)


def _failed(body: dict[str, object] | None) -> int:
    results = (body or {}).get("results")
    return sum(isinstance(r, dict) and r.get("status") == "failed" for r in results) if isinstance(results, list) else 0


def _imported(results: Results, standing: Sequence[RunStanding], where: RunFilter, status: str | None) -> list[Dated]:
    """Imported runs that are not in the store."""
    stored = {safe_name(each.called) for each in standing}
    found: list[Dated] = []
    for path in results.import_files():
        if path.stem in stored:
            continue
        runs: list[tuple[ListedRun, Run | None]]
        try:
            runs = [(_of_import(run, path, results), run) for run in read_export(path)]
        except InvalidInput as error:
            runs = [(_unreadable_import(path, str(error)), None)]
        for row, run in runs:
            benchmarks = [] if run is None else [result.benchmark for result in run.results]
            if (status is None or row.status == status) and matches(row, benchmarks, where):
                found.append((started_s(row.started), row))
    return sorted(found, key=lambda dated: dated[0], reverse=True)


def _of_import(run: Run, path: Path, results: Results) -> ListedRun:
    return ListedRun(
        id=run.id,
        uid=run.unique_id,
        name=run.name,
        started=run.started,
        ended=run.ended,
        status=run.status.value,
        machine=run.machine.fingerprint,
        host=run.machine.hostname,
        folder=run.folder,
        labels=run.labels,
        revision=revision_words(run.revisions),
        benchmarks=len(run.results),
        failed=sum(r.status is Status.FAILED for r in run.results),
        annotation=results.beside_import(run.id).read_annotation(),
        size_bytes=path.stat().st_size,
        in_store=False,
        headline=headline_of(run),
    )


def _unreadable_import(path: Path, problem: str) -> ListedRun:
    texts = dict.fromkeys(("started", "machine", "host"), "")
    return ListedRun(
        id=path.stem, uid=path.stem, name=path.stem, ended=None, status=UNREADABLE, folder=str(path), labels={},
        benchmarks=0, failed=0, annotation=None, size_bytes=path.stat().st_size, in_store=False, problem=problem, **texts,
    )  # fmt: skip

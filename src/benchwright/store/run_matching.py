"""Whether a RunFilter means a run that is on the disk and not in the store. The store itself asks its tables: `run_query`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.store.base import RunFilter
from benchwright.store.run_query import moment_s, started_s


class Matchable(msgspec.Struct, frozen=True, kw_only=True):
    """What can be asked of a run besides its status."""

    id: str
    uid: str
    name: str
    started: str
    machine: str
    host: str
    labels: Mapping[str, str]
    annotation: str | None
    benchmarks: tuple[Benchmark, ...] = ()


def matches(run: Matchable, where: RunFilter) -> bool:
    """Leaves `where.status` out."""
    return all(_answers(run, where))


def _answers(run: Matchable, where: RunFilter) -> Iterator[bool]:
    if where.id is not None:
        yield run.id == where.id
    if where.uid is not None:
        yield run.uid == where.uid
    if where.name is not None:
        yield fnmatchcase(run.name, where.name)
    if where.labels or where.tags:
        pairs = set(_pairs(run))
        yield {*where.labels.items(), *(("tag", tag) for tag in where.tags)} <= pairs
    if where.machine is not None:
        yield run.machine.startswith(where.machine) or run.host == where.machine
    if where.since is not None:
        yield started_s(run.started) >= moment_s("since", where.since)
    if where.until is not None:
        moment = started_s(run.started)
        limit, whole_day = moment_s("until", where.until), len(where.until.strip()) <= 10
        yield moment < limit + 86400 if whole_day else moment <= limit
    if where.benchmark is not None:
        yield any(fnmatchcase(b.name, where.benchmark) for b in run.benchmarks)
    if where.text:
        said = (run.id, run.name, run.host, *run.labels, *run.labels.values(), run.annotation or "")
        yield any(where.text.casefold() in text.casefold() for text in (*said, *(b.name for b in run.benchmarks)))


def _pairs(run: Matchable) -> Iterator[tuple[str, str]]:
    for labels in (run.labels, *(b.labels for b in run.benchmarks)):
        for label, value in labels.items():
            yield label, value
            yield from ((label, part) for part in value.split(",") if part)
    yield from (("tag", tag) for b in run.benchmarks for tag in b.tags)

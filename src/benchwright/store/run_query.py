"""Which runs a RunFilter finds: as SQL for runs in the store, and directly for runs only on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from sqlalchemy import Column, ColumnElement, Select, func, select

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.status import Status
from benchwright.core.stored_file import Unreadable, decode_stored_json, short
from benchwright.store.base import RunFilter, RunRow
from benchwright.store.run_document import hash_of, plain
from benchwright.store.schema import results, run_labels, runs

_COLUMNS = {"id": "called", "uid": "id"}  # where the names differ from RunRow's
_SHOWN = [runs.c[_COLUMNS.get(name, name)].label(name) for name in RunRow.__struct_fields__]


def select_runs(where: RunFilter, *, limit: int | None, newest_first: bool, dialect: str, project: str) -> Select[Any]:
    query = select(*_SHOWN).where(runs.c.project == project)
    for condition in run_conditions(where, dialect):
        query = query.where(condition)
    order = (runs.c.started_s, runs.c.key)
    query = query.order_by(*(c.desc() if newest_first else c for c in order))
    return query if limit is None else query.limit(max(0, limit))


def row_of(fields: Any) -> RunRow:
    """A row that `select_runs` found; Unreadable if it is damaged."""
    body = dict(fields)
    try:
        Status(body["status"])
        body["labels"] = decode_stored_json(body["labels"].encode()) if body["labels"] != "{}" else {}
        return msgspec.convert(body, RunRow)
    except (AttributeError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise Unreadable(f"the entry of run {short(str(body.get('id')), 80)} cannot be read: {error}") from None


def run_conditions(where: RunFilter, dialect: str) -> Iterator[ColumnElement[bool]]:
    """Of a query that has the table `runs`."""
    if where.id is not None:
        yield runs.c.called == plain(where.id)
    if where.uid is not None:
        yield runs.c.id == plain(where.uid)
    if where.name is not None:
        yield glob(runs.c.name, where.name, dialect)
    for label, value in (*where.labels.items(), *(("tag", tag) for tag in where.tags)):
        yield runs.c.key.in_(select(run_labels.c.run).where(run_labels.c.pair == hash_of(label, value)))
    if where.machine is not None:
        machine = plain(where.machine)
        yield runs.c.machine.startswith(machine, autoescape=True) | (runs.c.host == machine)
    if where.since is not None:
        yield runs.c.started_s >= moment_s("since", where.since)
    if where.until is not None:
        limit, whole_day = _until(where.until)
        yield runs.c.started_s < limit if whole_day else runs.c.started_s <= limit
    if where.status is not None:
        yield runs.c.status == where.status.value
    if where.benchmark is not None:
        matching = glob(results.c.benchmark, where.benchmark, dialect)
        if any(sign in where.benchmark for sign in "*?["):  # often found in most runs
            yield select(results.c.run).where(results.c.run == runs.c.key, matching).exists()
        else:
            yield runs.c.key.in_(select(results.c.run).where(matching))
    if where.text:
        yield _mentions(plain(where.text), dialect)


def _mentions(text: str, dialect: str) -> ColumnElement[bool]:
    escaped = text.replace("/", "//").replace("%", "/%").replace("_", "/_")

    def holds(words: ColumnElement[object]) -> ColumnElement[bool]:
        if dialect != "sqlite":
            return words.ilike(f"%{escaped}%", escape="/")
        # SQLite's LIKE ignores the case of ASCII only; folding the rest costs as much as the search.
        if text.isascii():
            return words.like(f"%{escaped}%", escape="/")
        return func.casefold(words).like(f"%{escaped.casefold()}%", escape="/")

    c = runs.c
    words = c.called + "\n" + c.name + "\n" + c.host + "\n" + c.labels + "\n" + c.revision
    words = words + "\n" + func.coalesce(c.annotation, "")
    return holds(words) | c.key.in_(select(results.c.run).where(holds(results.c.benchmark)))


def started_s(text: str) -> float:
    """Seconds since 1970, to sort by; 0 if the text is not a time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def moment_s(option: str, text: str, later: timedelta = timedelta()) -> float:
    """A time the user wrote, in seconds since 1970; InvalidInput names the option."""
    try:
        return (datetime.fromisoformat(text.strip()) + later).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            f"'{text}' is not a date or time", where=f"--{option}", remedy="write 2026-11-15 or 2026-11-15T08:30"
        ) from error


def _until(text: str) -> tuple[float, bool]:
    """The end, and whether it is that of a whole day: of a bare date."""
    whole_day = len(text.strip()) <= 10
    return moment_s("until", text, timedelta(days=1) if whole_day else timedelta()), whole_day


def matches(run: RunRow, benchmarks: Sequence[Benchmark], where: RunFilter) -> bool:
    """The same for a run on disk, except for `where.status`."""
    return all(_answers(run, benchmarks, where))


def _answers(run: RunRow, benchmarks: Sequence[Benchmark], where: RunFilter) -> Iterator[bool]:
    if where.id is not None:
        yield run.id == where.id
    if where.uid is not None:
        yield run.uid == where.uid
    if where.name is not None:
        yield fnmatchcase(run.name, where.name)
    if where.labels or where.tags:
        wanted = {*where.labels.items(), *(("tag", tag) for tag in where.tags)}
        yield wanted <= label_pairs(run.labels, benchmarks).keys()
    if where.machine is not None:
        yield run.machine.startswith(where.machine) or run.host == where.machine
    if where.since is not None:
        yield started_s(run.started) >= moment_s("since", where.since)
    if where.until is not None:
        started, (limit, whole_day) = started_s(run.started), _until(where.until)
        yield started < limit if whole_day else started <= limit
    if where.benchmark is not None:
        yield any(fnmatchcase(b.name, where.benchmark) for b in benchmarks)
    if where.text:
        texts = (run.id, run.name, run.host, *run.labels, *run.labels.values(), run.revision, run.annotation or "")
        yield any(where.text.casefold() in text.casefold() for text in (*texts, *(b.name for b in benchmarks)))


def label_pairs(labels: Mapping[str, str], benchmarks: Iterable[Benchmark]) -> dict[tuple[str, str], None]:
    """Every label of a run and of its benchmarks, tags included, in order and once each."""
    pairs = dict.fromkeys(pair for each in (labels, *(b.labels for b in benchmarks)) for pair in each.items())
    # A label of a model script may have several values, `test_group::daily,monthly`: each finds it.
    pairs |= {(label, part): None for label, value in list(pairs) if "," in value for part in value.split(",") if part}
    return pairs | {("tag", tag): None for b in benchmarks for tag in b.tags}


def glob(column: Column[str], pattern: str, dialect: str) -> ColumnElement[bool]:
    """Whether the column matches a shell glob; without wildcards, whether it is equal."""
    pattern = plain(pattern)
    if not any(c in pattern for c in "*?["):
        return column == pattern
    parts = list(_parts(pattern))
    if dialect == "sqlite":
        return column.op("GLOB", is_comparison=True)("".join(_for_sqlite(*part) for part in parts))
    return column.op("~", is_comparison=True)("^" + "".join(_for_postgresql(*part) for part in parts) + "$")


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    """`*`, `?`, ("[", its content), ("[!", its content), or ("", a literal character)."""
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "[":
            negated = pattern[i + 1 : i + 2] == "!"
            start = i + 1 + negated
            end = pattern.find("]", start + 1)
            if end > 0:
                inside = pattern[start:end]
                # In SQL a leading ^ would negate the set.
                inside = inside.lstrip("^") + "^" if inside.startswith("^") and inside != "^" else inside
                yield ("[!", inside) if negated else ("", inside) if inside == "^" else ("[", inside)
                i = end + 1
                continue
        yield (c, "") if c in "*?" else ("", c)
        i += 1


def _for_sqlite(kind: str, text: str) -> str:
    if kind in ("[", "[!"):
        return f"[{'^' if kind == '[!' else ''}{text}]"
    return kind or ("[[]" if text == "[" else text)


def _for_postgresql(kind: str, text: str) -> str:
    if kind in ("[", "[!"):
        inside = text.replace("\\", "\\\\").replace("[", "\\[")
        return f"[{'^' if kind == '[!' else ''}{inside}]"
    if kind:
        return ".*" if kind == "*" else "."
    return text if text.isalnum() or text == "_" or not text.isascii() else "\\" + text

"""From a RunFilter to SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Column, ColumnElement, Select, func, select

from benchwright.core.errors import InvalidInput
from benchwright.core.files.stored_file import Unreadable, decode_stored_json, short
from benchwright.store.base import RunFilter, RunRow
from benchwright.store.run_document import label_pair, plain
from benchwright.store.schema import results, run_labels, runs

_COLUMNS = {"id": "called", "uid": "id"}  # where they are not called as in RunRow
_SHOWN = [runs.c[_COLUMNS.get(name, name)].label(name) for name in RunRow.__struct_fields__]


def select_runs(where: RunFilter, *, limit: int | None, newest_first: bool, dialect: str) -> Select[Any]:
    query = select(*_SHOWN)
    for condition in _conditions(where, dialect):
        query = query.where(condition)
    order = (runs.c.started_s, runs.c.key)
    query = query.order_by(*(c.desc() if newest_first else c for c in order))
    return query if limit is None else query.limit(max(0, limit))


def row_of(fields: Any) -> RunRow:
    """What `select_runs` found, as a RunRow; Unreadable if it is none."""
    body = dict(fields)
    try:
        body["labels"] = decode_stored_json(body["labels"].encode()) if body["labels"] != "{}" else {}
        return msgspec.convert(body, RunRow)
    except (AttributeError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise Unreadable(f"the entry of run {short(str(body.get('id')), 80)} cannot be read: {error}") from None


def _conditions(where: RunFilter, dialect: str) -> Iterator[ColumnElement[bool]]:
    if where.id is not None:
        yield runs.c.called == plain(where.id)
    if where.uid is not None:
        yield runs.c.id == plain(where.uid)
    if where.name is not None:
        yield glob(runs.c.name, where.name, dialect)
    for label, value in (*where.labels.items(), *(("tag", tag) for tag in where.tags)):
        yield runs.c.key.in_(select(run_labels.c.run).where(run_labels.c.pair == label_pair(label, value)))
    if where.machine is not None:
        machine = plain(where.machine)
        yield runs.c.machine.startswith(machine, autoescape=True) | (runs.c.host == machine)
    if where.since is not None:
        yield runs.c.started_s >= moment_s("since", where.since)
    if where.until is not None:
        # A bare date means the whole day.
        whole_day = len(where.until.strip()) <= 10
        limit = moment_s("until", where.until, timedelta(days=1) if whole_day else timedelta())
        yield runs.c.started_s < limit if whole_day else runs.c.started_s <= limit
    if where.status is not None:
        yield runs.c.status == where.status.value
    if where.benchmark is not None:
        yield runs.c.key.in_(select(results.c.run).where(glob(results.c.benchmark, where.benchmark, dialect)))
    if where.text:
        yield _mentions(plain(where.text), dialect)


def _mentions(text: str, dialect: str) -> ColumnElement[bool]:
    escaped = text.replace("/", "//").replace("%", "/%").replace("_", "/_")

    def holds(words: ColumnElement[object]) -> ColumnElement[bool]:
        if dialect != "sqlite":
            return words.ilike(f"%{escaped}%", escape="/")
        # SQLite's LIKE takes no account of the case of ASCII by itself; the rest costs as much as the search.
        if text.isascii():
            return words.like(f"%{escaped}%", escape="/")
        return func.casefold(words).like(f"%{escaped.casefold()}%", escape="/")

    c = runs.c
    words = c.called + "\n" + c.name + "\n" + c.host + "\n" + c.labels + "\n" + func.coalesce(c.annotation, "")
    return holds(words) | c.key.in_(select(results.c.run).where(holds(results.c.benchmark)))


def started_s(text: str) -> float:
    """Seconds since 1970, to sort by; 0 if the text is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def moment_s(option: str, text: str, later: timedelta = timedelta()) -> float:
    """A time that a user wrote, in seconds since 1970; InvalidInput names the option."""
    try:
        return (datetime.fromisoformat(text.strip()) + later).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            f"'{text}' is not a date or time", where=f"--{option}", remedy="write 2026-11-15 or 2026-11-15T08:30"
        ) from error


def glob(column: Column[str], pattern: str, dialect: str) -> ColumnElement[bool]:
    """Whether the column matches, as the shell's globs do; without wildcards: is equal."""
    pattern = plain(pattern)
    if not any(c in pattern for c in "*?["):
        return column == pattern
    parts = list(_parts(pattern))
    if dialect == "sqlite":
        return column.op("GLOB", is_comparison=True)("".join(_for_sqlite(*part) for part in parts))
    return column.op("~", is_comparison=True)("^" + "".join(_for_postgresql(*part) for part in parts) + "$")


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    """`*`, `?`, ("[", what is in it), ("[!", what is in it), or ("", a character that means itself)."""
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "[":
            negated = pattern[i + 1 : i + 2] == "!"
            start = i + 1 + negated
            end = pattern.find("]", start + 1)
            if end > 0:
                inside = pattern[start:end]
                # In SQL a leading ^ would mean "none of these".
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

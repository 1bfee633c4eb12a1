"""Whole Runs with every raw sample as JSON, format `benchwright-export`, version 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.columns import as_list
from benchwright.core.errors import InvalidInput
from benchwright.core.redacted import run_without_secrets
from benchwright.core.run import Run
from benchwright.core.stored_file import Unreadable, read_stored_json, short
from benchwright.core.stored_run import stored_run
from benchwright.report.export.exported_file import exported_file

FORMAT = "benchwright-export"
VERSION = 1


class _Document(msgspec.Struct, frozen=True):
    format: str
    version: int
    runs: list[Any]


def export_json(runs: Sequence[Run], path: Path) -> None:
    """Writes the runs, one a line; secrets are replaced."""
    with exported_file(path) as aside, open(aside, "wb") as file:
        file.write(f'{{"format":"{FORMAT}","version":{VERSION},"runs":['.encode())
        for number, run in enumerate(runs):
            file.write(b",\n" if number else b"\n")
            body = msgspec.to_builtins(run_without_secrets(run), enc_hook=as_list)
            file.write(msgspec.json.encode(_plain(body)))
        file.write(b"\n]}\n")


def read_export(path: Path) -> list[Run]:
    """The runs of such a file, as they were; InvalidInput if it is not one, damaged or of a newer version."""
    where = str(path)
    try:
        document = read_stored_json(path, _Document)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", where=where) from error
    except Unreadable as error:
        raise InvalidInput(
            f"this is not a {FORMAT} file: {error}", where=where, remedy="export the run again"
        ) from error
    if document.format != FORMAT:
        raise InvalidInput(f"this is not a {FORMAT} file but '{short(document.format, 40)}'", where=where)
    if document.version > VERSION:
        raise InvalidInput(
            f"version {document.version} is newer than this benchwright, which reads {VERSION}",
            where=where,
            remedy="use the benchwright that wrote it",
        )
    try:
        # Numbers that are not finite are text in the file: not strict, so that they become numbers again.
        return [stored_run(run, strict=False) for run in document.runs]
    except Unreadable as error:
        raise InvalidInput(f"damaged: {error}", where=where, remedy="export the run again") from error


def _plain(value: object) -> object:
    """A value for JSON: numbers that are not finite as text; bytes of a name that are no UTF-8 replaced."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return value if _all_finite(value) else [_plain(item) for item in value]
    return value


def _all_finite(values: Sequence[Any]) -> bool:
    """Whether these are the samples of nearly every metric, which need not be looked at one by one."""
    try:
        return all(map(math.isfinite, values))
    except (TypeError, OverflowError):
        return False

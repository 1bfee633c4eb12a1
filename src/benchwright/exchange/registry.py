"""Which importers there are, and reading a file or a folder with the right one."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.run import Run
from benchwright.exchange.base import ENTRY_POINT_GROUP, Importer
from benchwright.exchange.foreign_json import load

# The same as the entry points of this package: looking those up costs more than loading these.
BUILT_IN = {
    "hyperfine": "benchwright.exchange.hyperfine:HyperfineImporter",
    "pytest-benchmark": "benchwright.exchange.pytest_benchmark:PytestBenchmarkImporter",
    "google-benchmark": "benchwright.exchange.google_benchmark:GoogleBenchmarkImporter",
    "asv": "benchwright.exchange.asv:AsvImporter",
    "driver": "benchwright.exchange.driver.importer:DriverImporter",
    "milabench": "benchwright.exchange.milabench.run_folder:MilabenchImporter",
}


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What a file or a folder gave; `problems` says in words which files of a folder could not be read."""

    runs: tuple[Run, ...]
    problems: tuple[str, ...] = ()


def importer_named(name: str) -> Importer:
    """The importer that `--from` calls so."""
    if name in BUILT_IN:
        return _load(BUILT_IN[name])
    added = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    if name in added:
        importer: Importer = added[name].load()()
        return importer
    known = list(dict.fromkeys([*BUILT_IN, *added]))
    raise InvalidInput(
        f"'{name}' is not a tool whose results can be imported",
        where="--from",
        remedy=did_you_mean(name, known) or f"use one of {', '.join(known)}",
    )


def import_results(path: Path, *, tool: str | None = None) -> Imported:
    """The runs in a file, or in every `*.json` and every folder of `*.data` below a folder that an importer recognises,
    each run once.

    A damaged file is InvalidInput when it was named, and a problem when it was found in a folder.
    """
    importers = [importer_named(tool)] if tool is not None else list(_all())
    if not path.is_dir():
        importer = importers[0] if tool is not None else _recogniser(importers, path)
        if importer is None:
            raise _unknown(path)
        return Imported(runs=tuple(importer.read(path)))
    runs: dict[str, Run] = {}
    problems = []
    read = 0
    for file in _result_files(path):
        found = _recogniser(importers, file)
        if found is None:
            continue
        read += 1
        try:
            runs |= {run.id: run for run in found.read(file)}
        except InvalidInput as error:
            problems.append(str(error))
    if not read:
        raise _unknown(path)
    return Imported(runs=tuple(runs.values()), problems=tuple(problems))


def _result_files(folder: Path) -> list[Path]:
    """What could hold results below a folder: files, no pipes or devices, and folders of `*.data`."""
    data = {path.parent for path in folder.rglob("*.data") if path.is_file()}
    return [*sorted(path for path in folder.rglob("*.json") if path.is_file()), *sorted(data)]


def _recogniser(importers: Iterable[Importer], path: Path) -> Importer | None:
    return next((importer for importer in importers if importer.recognises(path)), None)


def _unknown(path: Path) -> InvalidInput:
    if not path.exists():
        return InvalidInput("there is no such file", where=str(path), remedy="check the path")
    what = "no result file in this folder is known" if path.is_dir() else "this is not a result file that is known"
    try:
        if path.is_file():
            load(path)
    except InvalidInput as error:
        return error  # cut off, empty or no JSON at all, and where
    return InvalidInput(
        what,
        where=str(path),
        remedy=f"files of {', '.join(BUILT_IN)} can be imported; --from TOOL says what it is and shows what is wrong with it",
    )


def _all() -> Iterator[Importer]:
    for place in BUILT_IN.values():
        yield _load(place)
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        if entry.name not in BUILT_IN:
            yield entry.load()()


def _load(place: str) -> Importer:
    module, _, name = place.partition(":")
    importer: Importer = getattr(importlib.import_module(module), name)()
    return importer

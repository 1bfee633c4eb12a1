"""The importer seam. Entry-point group: `benchwright.importers`; every variant passes one contract test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from benchwright.core.errors import BrokenPlugin, InvalidInput
from benchwright.core.registry import Registry
from benchwright.core.run import Run
from benchwright.runs.foreign_json import MOST_LINES_BYTES, load, open_foreign

ENTRY_POINT_GROUP = "benchwright.importers"


class Importer(Protocol):
    """Reads the result files of one tool. Reading writes nothing."""

    @property
    def name(self) -> str:
        """Its name for `--from`, and the label `imported_from` of its runs."""
        ...

    def recognises(self, path: Path) -> bool:
        """Whether the file's content is of this kind; never raises."""
        ...

    def read(self, path: Path) -> list[Run]:
        """The runs in the file; none if it has no results. InvalidInput says what is wrong, where, and what to do.

        A run's id is derived from the content, so that reading a file twice gives the same ids. `folder` is the file.
        """
        ...


@runtime_checkable
class ReadsOutput(Importer, Protocol):
    """An importer that also reads its tool's JSON document in the output of a program: a `converter` of specifications."""

    def printed(self, document: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """Records with `type` (the benchmark), `metric`, `unit` and `value` or `values`; none of another tool's document."""
        ...


# The importers, and importing a file or folder with the right one.


IMPORTERS: Registry[Callable[[], Importer]] = Registry(ENTRY_POINT_GROUP, "importer")


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a file or folder; `problems` lists the files of a folder that could not be read."""

    runs: tuple[Run, ...]
    problems: tuple[str, ...] = ()


def importer_named(name: str) -> Importer:
    """The importer that `--from` names."""
    return IMPORTERS.load(name, where="--from")()


def output_reader_named(name: str) -> ReadsOutput | None:
    """The importer of that name, if it reads output."""
    found = IMPORTERS.load(name)() if name in IMPORTERS else None
    return found if isinstance(found, ReadsOutput) else None


def output_readers() -> list[str]:
    """The names of importers that read output."""
    loaded = ((name, made) for name, made in IMPORTERS.load_all() if not isinstance(made, BrokenPlugin))
    return [name for name, made in loaded if isinstance(made(), ReadsOutput)]


def import_results(path: Path, *, tool: str | None = None) -> Imported:
    """The runs in a file, or in every `*.json` and every folder of `*.data` or `*.txt` below a folder that an importer
    recognises; each run once.

    A damaged file is InvalidInput if it was named, and a problem if it was found in a folder.
    """
    broken: list[str] = []
    importers = [importer_named(tool)] if tool is not None else _all(broken)
    if not path.is_dir():
        if path.exists():
            open_foreign(path, MOST_LINES_BYTES).close()
        importer = importers[0] if tool is not None else _recogniser(importers, path)
        if importer is None:
            raise _unknown(path, broken)
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
        raise _unknown(path, broken)
    return Imported(runs=tuple(runs.values()), problems=tuple(problems))


def _all(broken: list[str]) -> list[Importer]:
    """Every importer that can be loaded, ours first; adds a line to `broken` for each that cannot."""
    found: list[Importer] = []
    for _, made in IMPORTERS.load_all():
        if isinstance(made, BrokenPlugin):
            broken.append(str(made))
        else:
            found.append(made())
    return found


def _result_files(folder: Path) -> list[Path]:
    """Paths below a folder that may hold results: regular `*.json` files, and folders of `*.data` or `*.txt`."""
    data = {path.parent for end in ("*.data", "*.txt") for path in folder.rglob(end) if path.is_file()}
    return [*sorted(path for path in folder.rglob("*.json") if path.is_file()), *sorted(data)]


def _recogniser(importers: Iterable[Importer], path: Path) -> Importer | None:
    return next((importer for importer in importers if importer.recognises(path)), None)


def _unknown(path: Path, broken: list[str]) -> InvalidInput:
    if not path.exists():
        return InvalidInput("there is no such file", where=str(path), remedy="check the path")
    what = "no known result file in this folder" if path.is_dir() else "this is not a known result file"
    try:
        if path.is_file():
            load(path)
    except InvalidInput as error:
        return error  # truncated, empty or not JSON, and where
    return InvalidInput(
        what,
        where=str(path),
        remedy=f"files of {', '.join(IMPORTERS.names())} can be imported; --from TOOL shows what is wrong with a file"
        + "".join(f"; {line}" for line in broken),
    )

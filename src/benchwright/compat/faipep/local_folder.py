"""FAI-PEP's local reporter: a folder for each test of a run, with a file for each metric.

`<platform>/<framework>/<net_name>/<metric>/<identifier>/<year>/<month>/<day>/<commit>/<n>/`: `<n>` is the first number from 0
that is not taken. The folder appears whole or not at all, and no two writers get the same.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchwright.compat.faipep.names import file_name
from benchwright.compat.faipep.reports import HarnessReport, encoded, reports_of
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.core.whole_file import alone_in, unwritable

META = "meta"
_LEVELS = ("platform", "framework", "net_name", "metric", "identifier")
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


class FaiPepExporter:
    """A folder of records for each test."""

    suffix = None

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        return export_faipep(runs, Path(target))


def export_faipep(runs: Sequence[Run], path: Path) -> tuple[str, ...]:
    """Writes the tests of the runs below `path`; returns what has no records, and why."""
    left_out: list[str] = []
    for run in runs:
        found = reports_of(run)
        write_reports(found.reports, path)
        left_out += found.left_out
    return tuple(f"no records of {line}" for line in left_out)


def write_reports(reports: Iterable[HarnessReport], path: Path, *, once: bool = False) -> None:
    """InvalidInput or CannotWrite says why a folder could not be written; nothing of that test is there then.

    `once`: what is already there, such as from before a run was resumed, is not written again.
    """
    check_folder(path)
    for report in reports:
        folder = path.joinpath(*_levels(report))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with alone_in(folder):
                files = _files(report)
                if not (once and _is_there(files, folder)):
                    _write(files, folder)
        except OSError as error:
            raise unwritable(folder, error) from error


def check_folder(path: Path) -> None:
    """InvalidInput for what cannot be a folder."""
    if path.exists() and not path.is_dir():
        raise InvalidInput("this is not a folder", where=str(path), remedy="give the name of a folder")


def _levels(report: HarnessReport) -> list[str]:
    day = datetime.fromtimestamp(report.date, UTC)
    named = [file_name(str(report.meta[key])) for key in _LEVELS]
    return [*named, str(day.year), str(day.month), str(day.day), file_name(str(report.meta["commit"]))]


def _is_there(files: Mapping[str, bytes], folder: Path) -> bool:
    """Whether a report in `folder` has the same files."""
    for meta in folder.glob(f"*/{META}.txt"):
        try:
            if {file.name: file.read_bytes() for file in meta.parent.iterdir()} == files:
                return True
        except OSError:
            continue
    return False


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    """All files aside, then one rename."""
    aside = folder / f".new-{os.urandom(6).hex()}"
    aside.mkdir()
    try:
        for name, content in files.items():
            (aside / name).write_bytes(content)
        _become_next(aside, folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _become_next(aside: Path, folder: Path) -> None:
    number = 0
    while True:
        place = folder / str(number)
        number += 1
        if os.path.lexists(place):
            continue
        try:
            os.rename(aside, place)
            return
        except OSError as error:
            if error.errno not in _TAKEN:
                raise


def _files(report: HarnessReport) -> dict[str, bytes]:
    """Name → content. Names that are the same once their odd characters are gone get a number."""
    files: dict[str, object] = {META: report.meta}
    taken = {META}  # whatever their case: some file systems ignore it
    for record in report.records:
        wanted = name = file_name(f"{record['type']} {record['metric']}")
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{wanted}-{number}"
        taken.add(name.casefold())
        files[name] = record
    return {f"{name}.txt": msgspec.json.format(encoded(value), indent=2) + b"\n" for name, value in files.items()}

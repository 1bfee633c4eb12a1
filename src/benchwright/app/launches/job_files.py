"""Files and folders that a launch needs before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchwright.core.errors import CannotMeasure
from benchwright.core.files.whole_file import write_whole
from benchwright.core.job import Job
from benchwright.record import is_complete


def write_file(path: Path, text: str) -> None:
    """CannotMeasure if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode(), sync=False)
    except OSError as error:
        raise CannotMeasure(f"{path}: {error.strerror or error}; it must be written before a launch") from error


def still_to_launch(group: Sequence[Sequence[Job]]) -> list[Sequence[Job]]:
    """Of launches that wait for each other, those that were not made yet; of any other group, all."""
    if group[0][0].turn is None:
        return list(group)
    empty_folder(Path(group[0][0].turn.folder))
    return [launch for launch in group if not is_complete(launch[0].stream)]


def empty_folder(folder: Path) -> None:
    """Made if it is not there."""
    if folder.exists():
        remove_folder(folder)
    folder.mkdir(parents=True)


def remove_folder(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)

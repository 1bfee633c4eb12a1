"""Files of one benchmark in one folder, by the names its programs expect: models find their weights beside them.

sets/<hash>/<filename>    a link to each file
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from benchwright.artifacts.objects import Objects


def side_by_side(folder: Path, objects: Objects, files: Mapping[str, Path]) -> dict[str, Path]:
    """Filename → path, all in one folder: that of the files if they share one, else one of links below `folder`.

    Raises OSError.
    """
    if len({path.parent for path in files.values()}) <= 1 and all(name == path.name for name, path in files.items()):
        return dict(files)
    text = "\0".join(f"{name}\0{path}" for name, path in sorted(files.items()))
    place = folder / "sets" / hashlib.sha256(os.fsencode(text)).hexdigest()[:32]
    if not all(_leads_to(place / name, path) for name, path in files.items()):
        _make(place, objects, files)
    return {name: place / name for name in files}


def drop_unlinked(folder: Path) -> None:
    """Removes the folders of links to files that are no longer in the cache, or no longer anywhere."""
    for place in (folder / "sets").glob("*"):
        if any(not link.exists() or (not link.is_symlink() and link.stat().st_nlink < 2) for link in place.glob("*")):
            shutil.rmtree(place, ignore_errors=True)


def _leads_to(link: Path, path: Path) -> bool:
    try:
        return os.path.samefile(link, path)
    except OSError:
        return False


def _make(place: Path, objects: Objects, files: Mapping[str, Path]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = place.with_name(f".{os.urandom(6).hex()}")
    aside.mkdir()
    try:
        for name, path in files.items():
            if path.is_relative_to(objects.folder):
                objects.link(
                    path, aside / name
                )  # not symbolic: some runtimes refuse weights outside of the model's folder
            else:
                os.symlink(path.absolute(), aside / name)
        shutil.rmtree(place, ignore_errors=True)
        os.rename(aside, place)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise

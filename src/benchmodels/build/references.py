"""References that are computed once and kept beside the builds: of a model file, its inputs and the versions involved."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from benchmodels.build.builder import FORMAT, Facts, read_reference, write_entry
from benchmodels.build.cache import ALWAYS, IF_NEEDED, BuildCache
from benchmodels.check.reference import Reference
from benchmodels.measure.work import CallWork
from benchmodels.types import Details


def kept_reference(
    folder: str, parts: Details, find: Callable[[], Reference], complain: Callable[[str], None], rebuild: str
) -> Reference:
    """The verified result of the first `find` for `parts`, from the cache in `folder`; without a folder, calls `find` each time."""
    if not folder:
        return find()
    known = {**parts, "runtime": "reference", "format": FORMAT}
    cache = BuildCache(folder, complain)

    def make(place: Path) -> None:
        write_entry(str(place), {}, find(), Facts(None, CallWork(None, None, None), []))

    entry = cache.entry(cache.key(known), make, parts=known, rebuild=ALWAYS if rebuild == ALWAYS else IF_NEEDED)
    return read_reference(str(entry.folder))

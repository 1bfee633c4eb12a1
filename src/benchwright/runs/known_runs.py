"""The runs of a base folder: all of them, or the one that a word means."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.runs.run_folder import RunFolder

PART_OF_UID = re.compile(r"[0-9a-f]{6,32}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d(_\d+)?")


def all_runs(runs: Path) -> list[RunFolder]:
    """The run folders below `runs`, most recently started first."""
    return by_start(runs, lambda _: True)


def by_start(runs: Path, is_meant: Callable[[Path], bool]) -> list[RunFolder]:
    """Runs for which `is_meant` is true, which is asked before anything is opened."""
    begun = []
    for entry in _entries(runs):
        if not is_meant(entry):
            continue
        head = RunFolder(entry).read_head()
        if head is not None:
            begun.append(((head.started, head.written_ns, entry.name), RunFolder(entry, head)))
    return [folder for _, folder in sorted(begun, key=lambda found: found[0], reverse=True)]


def unplanned(runs: Path) -> list[RunFolder]:
    """Folders without a plan, newest first: the run is still being planned, or was killed before that was done."""
    found = []
    for entry in _entries(runs):
        try:
            if not (entry / "plan.json").exists():
                found.append(((entry / "lock").stat().st_mtime, RunFolder(entry)))
        except OSError:  # no run folder, or gone meanwhile
            continue
    return [folder for _, folder in sorted(found, key=lambda pair: pair[0], reverse=True)]


def _entries(runs: Path) -> list[Path]:
    try:
        return [entry for entry in runs.iterdir() if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def find_run(runs: Path, word: str) -> RunFolder:
    """The run that `word` names: `last`, a folder's path, its name, the newest of that name, the beginning of one, or (the
    beginning of) its uid."""
    if (path := _folder_at(word)) is not None:
        return RunFolder(path)
    if os.path.basename(word) == word and not word.startswith(".") and _is_run(runs / word, "plan.json", "lock"):
        return RunFolder(runs / word)  # without reading all the others; one that was killed before it had a plan too
    known = all_runs(runs)
    if word == "last":
        if known:
            return known[0]
        raise InvalidInput(f"there are no runs in {runs} yet", remedy="measure something: benchwright run -- COMMAND")
    if meant := named_so(word, [folder.id for folder in known]):
        return next(folder for folder in known if folder.id == meant[0])
    if folder := with_uid(word, known):
        return folder
    raise InvalidInput(
        f"no run called '{word}' in {runs}",
        remedy=did_you_mean(word, [f.id for f in known]) or "see 'benchwright runs'",
    )


def with_uid(word: str, known: Sequence[RunFolder]) -> RunFolder | None:
    """The run whose uid is `word` or begins with it, if `word` is long enough; InvalidInput if two do."""
    if not PART_OF_UID.fullmatch(word):
        return None
    meant = [folder for folder in known if folder.unique_id.startswith(word)]
    if len({folder.unique_id for folder in meant}) > 1:
        shown = ", ".join(f"{folder.unique_id} ({folder.id})" for folder in meant[:4])
        raise InvalidInput(f"'{word}' matches {len(meant)} ids: {shown}", remedy="write more characters")
    return meant[0] if meant else None


def named_so(word: str, ids: Sequence[str]) -> list[str]:
    """The `ids` that `word` means: that id, else runs of that name, else ids that begin with it.

    So `train` is the newest run called train, even if one called train2 is newer.
    """
    ways: tuple[Callable[[str], bool], ...] = (
        lambda run_id: run_id == word,
        lambda run_id: run_id.startswith(f"{word}.") and _TIME.fullmatch(run_id, len(word) + 1) is not None,
        lambda run_id: run_id.startswith(f"{word}."),
        lambda run_id: run_id.startswith(word),
    )
    return next((found for way in ways if word and (found := [i for i in ids if way(i)])), [])


def _folder_at(word: str) -> Path | None:
    """The run folder at that path; None if there is none, or the word cannot be a path."""
    try:
        path = Path(word).expanduser()
        return path.resolve() if word and _is_run(path) else None
    except (OSError, RuntimeError):  # the home of an unknown user
        return None


def _is_run(path: Path, *files: str) -> bool:
    try:
        return any((path / name).is_file() for name in files or ("plan.json",))
    except (OSError, ValueError):  # too long, or with a NUL
        return False

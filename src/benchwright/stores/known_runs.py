"""The runs of a base folder: all of them, and the one that a word means."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from benchwright.domain.errors import InvalidInput, did_you_mean
from benchwright.stores.run_folder import RunFolder

_HEAD_BYTES = 8192  # of a plan: what begins it is in there, however long its name
_STARTED = re.compile(rb'"started":\s*"([^"\\]{1,40})"')
_TIME = re.compile(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d(_\d+)?")


def all_runs(runs: Path) -> list[RunFolder]:
    """The run folders below `runs`, newest first by the time they were started."""
    try:
        plans = [entry / "plan.json" for entry in runs.iterdir() if not entry.name.startswith(".")]
    except FileNotFoundError:
        return []
    begun = [(moment, plan) for plan in plans if (moment := _begun(plan)) is not None]
    return [RunFolder(plan.parent) for _, plan in sorted(begun, reverse=True)]


def _begun(plan: Path) -> tuple[float, int] | None:
    """When the run of a plan was started, and when the plan was written; None if it is no file.

    What was copied or edited later is not newer by that, so the plan's own word counts; the file's time only tells
    apart what began in the same second, or where the plan is damaged.
    """
    try:
        if not plan.is_file():  # not even opened: it may be a pipe
            return None
        with open(plan, "rb") as handle:
            written = os.fstat(handle.fileno()).st_mtime_ns
            said = _STARTED.search(handle.read(_HEAD_BYTES))
    except OSError:
        return None
    try:
        moment = datetime.fromisoformat(said[1].decode()).timestamp() if said else written / 1e9
    except (ValueError, OverflowError):
        moment = written / 1e9
    return moment, written


def find_run(runs: Path, word: str) -> RunFolder:
    """The run that `word` names: `last`, a folder's path, its name, the newest of that name, or the beginning of one."""
    if (path := _folder_at(word)) is not None:
        return RunFolder(path)
    if os.path.basename(word) == word and not word.startswith(".") and _is_run(runs / word):
        return RunFolder(runs / word)  # without looking at all the others
    known = all_runs(runs)
    if word == "last":
        if known:
            return known[0]
        raise InvalidInput(f"there are no runs in {runs} yet", remedy="measure something: benchwright run -- COMMAND")
    if meant := named_so(word, [folder.id for folder in known]):
        return next(folder for folder in known if folder.id == meant[0])
    raise InvalidInput(
        f"no run called '{word}' in {runs}",
        remedy=did_you_mean(word, [f.id for f in known]) or "see 'benchwright runs'",
    )


def named_so(word: str, ids: Sequence[str]) -> list[str]:
    """Those of `ids` that `word` means: it is one; else, they are of that name; else, they begin with it.

    So `train` is the newest run called train, however new one called train2 is.
    """
    ways: tuple[Callable[[str], bool], ...] = (
        lambda run_id: run_id == word,
        lambda run_id: run_id.startswith(f"{word}.") and _TIME.fullmatch(run_id, len(word) + 1) is not None,
        lambda run_id: run_id.startswith(f"{word}."),
        lambda run_id: run_id.startswith(word),
    )
    return next((found for way in ways if word and (found := [i for i in ids if way(i)])), [])


def _folder_at(word: str) -> Path | None:
    """The run folder at that path; None if there is none, or the word can be no path."""
    try:
        path = Path(word).expanduser()
        return path.resolve() if word and _is_run(path) else None
    except (OSError, RuntimeError):  # of a user who is not known
        return None


def _is_run(path: Path) -> bool:
    try:
        return (path / "plan.json").is_file()
    except (OSError, ValueError):  # too long, or with a NUL
        return False
